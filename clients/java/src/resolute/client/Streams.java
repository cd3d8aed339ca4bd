package resolute.client;

import io.grpc.Context;
import io.grpc.StatusRuntimeException;
import java.util.Iterator;
import java.util.Optional;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import resolute.api.experiments.v1.Experiment;
import resolute.api.experiments.v1.ExperimentKey;
import resolute.api.experiments.v1.ExperimentsServiceGrpc;
import resolute.api.experiments.v1.WatchExperimentsRequest;
import resolute.api.logs.v1.FollowLinesRequest;
import resolute.api.logs.v1.Line;
import resolute.api.logs.v1.LineFilter;
import resolute.api.logs.v1.LogsServiceGrpc;

/** Streams that are opened again, after what came last, when their connection breaks or nothing has come for a minute. */
public final class Streams {
    private static final long LONGEST_SILENCE_SECONDS = 60;
    private static final double FIRST_WAIT_SECONDS = 0.1;
    private static final double LONGEST_WAIT_SECONDS = 2;
    private static final ScheduledThreadPoolExecutor CLOCK = clock();

    private Streams() {}

    /** Gives the states of an experiment, from the present one to the last. */
    public static void watchExperiment(Connection connection, ExperimentKey key, Consumer<Experiment> take)
        throws InterruptedException {
        var stub = connection.stub(ExperimentsServiceGrpc::newBlockingStub);
        var watched = WatchExperimentsRequest.ExperimentSubscription.newBuilder().setKey("it").setExperiment(key);
        reopened(() -> stub.watchExperiments(WatchExperimentsRequest.newBuilder().addExperiments(watched).build()), answer -> {
            if (!answer.hasExperimentChange() || !answer.getExperimentChange().hasExperiment()) {
                return false;
            }
            Experiment state = answer.getExperimentChange().getExperiment();
            take.accept(state);
            watched.setAfterRevision(state.getRevision());
            return state.hasEndTime();
        });
    }

    /** Gives the log of a trial, line by line, until it is complete. */
    public static void followLog(Connection connection, String trialId, Consumer<Line> take) throws InterruptedException {
        var stub = connection.stub(LogsServiceGrpc::newBlockingStub);
        var filter = LineFilter.newBuilder().setTrialId(trialId);
        var followed = FollowLinesRequest.Subscription.newBuilder().setKey("it").setFilter(filter);
        reopened(() -> stub.followLines(FollowLinesRequest.newBuilder().addSubscriptions(followed).build()), answer -> {
            if (answer.getKey().isEmpty()) {
                return false;
            }
            answer.getLinesList().forEach(take);
            followed.setAfterLineId(answer.getCursor());
            return answer.getComplete();
        });
    }

    /** Reads a stream until {@code isLast} says so. */
    private static <A> void reopened(Supplier<Iterator<A>> open, Predicate<A> isLast) throws InterruptedException {
        double wait = FIRST_WAIT_SECONDS;
        while (true) {
            try (var attempt = new Attempt<>(open)) {
                for (Optional<A> answer = attempt.next(); answer.isPresent(); answer = attempt.next()) {
                    wait = FIRST_WAIT_SECONDS;
                    if (isLast.test(answer.get())) {
                        return;
                    }
                }
            }
            Thread.sleep((long) (1000 * wait * ThreadLocalRandom.current().nextDouble(0.5, 1)));
            wait = Math.min(2 * wait, LONGEST_WAIT_SECONDS);
        }
    }

    /** A stream that is given up when it is silent for too long. */
    private static final class Attempt<A> implements AutoCloseable {
        private final Context.CancellableContext context = Context.current().withCancellation();
        private final AtomicLong heard = new AtomicLong(System.nanoTime());
        private final ScheduledFuture<?> watch =
            CLOCK.scheduleAtFixedRate(this::listen, 1, 1, TimeUnit.SECONDS);
        private final Supplier<Iterator<A>> open;
        private Iterator<A> answers;
        private volatile boolean silent;

        Attempt(Supplier<Iterator<A>> open) {
            this.open = open;
        }

        /** The next answer; none if the stream ended or is lost. */
        Optional<A> next() {
            try {
                if (answers == null) {
                    answers = context.call(open::get);
                }
                Optional<A> answer = answers.hasNext() ? Optional.of(answers.next()) : Optional.empty();
                heard.set(System.nanoTime());
                return answer;
            } catch (StatusRuntimeException error) {
                if (silent || Failure.of(error).isLostConnection()) {
                    return Optional.empty();
                }
                throw error;
            } catch (RuntimeException error) {
                throw error;
            } catch (Exception error) {
                throw new IllegalStateException("opening a stream throws no checked exception", error);
            }
        }

        @Override
        public void close() {
            watch.cancel(false);
            context.cancel(null);
        }

        private void listen() {
            if (System.nanoTime() - heard.get() > TimeUnit.SECONDS.toNanos(LONGEST_SILENCE_SECONDS)) {
                silent = true;
                context.cancel(null);
            }
        }
    }

    private static ScheduledThreadPoolExecutor clock() {
        var executor = new ScheduledThreadPoolExecutor(1, work -> {
            Thread thread = new Thread(work, "resolute-silent-streams");
            thread.setDaemon(true);
            return thread;
        });
        executor.setRemoveOnCancelPolicy(true);
        return executor;
    }
}
