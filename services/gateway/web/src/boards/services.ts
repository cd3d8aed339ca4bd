import { BoardsService } from "$gen/resolute/api/experiments/v1/boards_service_pb.js";
import { clientOf } from "$src/api/services";

export const boardsService = clientOf(BoardsService);
