import MartletClient
import MartletConnections
import MartletTransport
import Synchronization
import SystemPackage

/// One run of a managed download: what makes it stop, and what waits for its end.
final class ManagedRun: Sendable {
    /// How it ended.
    enum Outcome: Sendable {
        case finished(DownloadResult)
        case failed(HTTPError)
        /// Its task was cancelled, with what has come kept.
        case stopped

        var ending: DownloadQueueMachine.Ending {
            switch self {
            case .finished: .finished
            case .failed: .failed
            case .stopped: .stopped
            }
        }
    }

    /// What a run is made of.
    struct Order: Sendable {
        var plan: DownloadJob.Plan
        /// Where the file was said to be later than in the plan, in this order.
        var movedURLs: [HTTPURL]
        var status: DownloadStatus
        var slots: any ConnectionSlots
        var prepare: (@Sendable (inout HTTPFields, HTTPURL) async throws -> Void)?
        var make: DownloadFactory
        /// Told the file's name as soon as it is known, where it was not.
        var named: @Sendable (FilePath) async -> Void
        /// Told what is to be known of the file before it gets its name.
        var noting: DownloadJob.Noting
    }

    private enum Signal: Sendable {
        case ended(Outcome)
        case stop
        case aside
    }

    private struct State {
        var job: (any DownloadRunning)?
        /// A rate that was set before there was a job to have it.
        var bandwidth: BandwidthRate??
    }

    private let stopping = NewestValue(false)
    private let ending = NewestValue(false)
    /// Guards the above: the run, and the manager.
    private let state = Mutex(State())

    /// Tells it to end.
    func stop() { stopping.update { true } }

    /// The manager has dealt with its end.
    func settle() { ending.update { true } }

    /// Waits until the manager has dealt with its end, or the task is cancelled.
    func settled() async { await ending.becomesTrue() }

    /// What runs it, once it is there.
    var job: (any DownloadRunning)? { state.withLock { $0.job } }

    /// Changes how fast it may go, at once.
    func setBandwidth(_ rate: BandwidthRate?) {
        let job = state.withLock { state in
            if state.job == nil { state.bandwidth = .some(rate) }
            return state.job
        }
        job?.setBandwidth(rate)
    }

    /// Runs it until it ends by itself, is told to end, or the task is cancelled.
    func run(_ order: Order) async -> Outcome {
        await withTaskGroup(of: Signal.self) { group in
            group.addTask { .ended(await self.perform(order)) }
            group.addTask {
                await self.stopping.becomesTrue()
                return .stop
            }
            if case .folder = order.plan.target {
                group.addTask {
                    await self.watchName(order)
                    return .aside
                }
            }
            var outcome = Outcome.stopped
            while let signal = await group.next() {
                switch signal {
                case .ended(let result):
                    outcome = result
                    group.cancelAll()
                case .stop: group.cancelAll()
                case .aside: break
                }
            }
            return outcome
        }
    }

    private func perform(_ order: Order) async -> Outcome {
        do {
            try Task.checkCancellation()
            var plan = order.plan
            if let prepare = order.prepare {
                do {
                    let (headers, url) = (plan.options.headers, order.movedURLs.last ?? plan.url)
                    plan.options.headers = try await waitUnlessCancelled {
                        var prepared = headers
                        try await prepare(&prepared, url)
                        return prepared
                    }
                } catch let error where !(error is HTTPError) && !(error is CancellationError) {
                    try Task.checkCancellation()
                    // Named by its type alone: this is kept on disk, and the closure deals with secrets.
                    throw HTTPError(
                        .invalidRequest, phase: .preparing,
                        message: "the closure that prepares requests threw \(type(of: error))",
                        underlying: error)
                }
                try Task.checkCancellation()
            }
            let job = order.make(plan, order.status, order.slots)
            for url in order.movedURLs { job.move(to: url) }
            let bandwidth = state.withLock { state in
                state.job = job
                return state.bandwidth
            }
            if let bandwidth { job.setBandwidth(bandwidth) }
            return .finished(try await job.run(noting: order.noting))
        } catch is CancellationError {
            return .stopped
        } catch let error as HTTPError {
            return .failed(error)
        } catch {
            return .failed(
                HTTPError(.systemFailed, phase: .evaluating, message: "\(type(of: error))", underlying: error)
            )
        }
    }

    /// Waits until the file's name is known, and tells it; progress is what changes when a run gets ahead.
    private func watchName(_ order: Order) async {
        var seen: UInt64 = 0
        while let (version, _) = await order.status.progress.next(after: seen), !Task.isCancelled {
            seen = version
            guard let path = job?.path else { continue }
            await order.named(path)
            return
        }
    }
}
