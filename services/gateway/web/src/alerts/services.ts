import { AlertsService } from "$gen/resolute/api/experiments/v1/alerts_service_pb.js";
import { clientOf } from "$src/api/services";

export const alerts = clientOf(AlertsService);
