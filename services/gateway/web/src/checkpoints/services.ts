import { CheckpointsService } from "$gen/resolute/api/checkpoints/v1/checkpoints_service_pb.js";
import { clientOf } from "$src/api/services";

export const checkpointsService = clientOf(CheckpointsService);
