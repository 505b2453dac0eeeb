public import MartletCore
import Synchronization

/// One run of a managed download, which can be stopped and awaited.
final class ManagedRun: Sendable {
    package enum Outcome: Sendable {
        case finished(DownloadResult)
        case failed(HTTPError)
        /// The run's task was cancelled. The received bytes are retained.
        case stopped

        var machineOutcome: DownloadQueueMachine.Outcome {
            switch self {
            case .finished: .finished
            case .failed: .failed
            case .stopped: .stopped
            }
        }
    }

    /// The inputs of a run.
    struct Order: Sendable {
        var plan: DownloadJob.Plan
        /// The URLs given after that of the plan, in order.
        var movedURLs: [HTTPURL]
        var status: DownloadStatus
        var slots: HostConnectionSlots
        var prepare: (@Sendable (inout HTTPHeaders, HTTPURL) async throws -> Void)?
        var make: DownloadFactory
        /// Receives the path of the file as soon as it is known.
        var named: @Sendable (FilePath) async -> Void
        /// Writes the record of the complete file, before the file gets its name.
        var onPublication: DownloadJob.PublicationHandler
    }

    private enum Signal: Sendable {
        case ended(Outcome)
        case stop
        case named
    }

    private struct State {
        var job: (any RunnableDownload)?
        /// A rate that was set before there was a job.
        var bandwidth: BandwidthRate??
    }

    private let stopping = CurrentValue(false)
    private let isSettled = CurrentValue(false)
    /// The lock on the state, used by the run and the manager.
    private let state = Mutex(State())

    func stop() { stopping.update { true } }

    /// Records that the manager has handled the end.
    func settle() { isSettled.update { true } }

    /// Waits until the manager has handled the end, or the task is cancelled.
    func settled() async { await isSettled.becomesTrue() }

    /// The job, once it exists.
    var job: (any RunnableDownload)? { state.withLock { $0.job } }

    /// Changes the maximum rate immediately.
    func setBandwidth(_ rate: BandwidthRate?) {
        let job = state.withLock { state in
            if state.job == nil { state.bandwidth = .some(rate) }
            return state.job
        }
        job?.setBandwidth(rate)
    }

    /// Runs until the download ends, the run is stopped, or the task is cancelled.
    func run(_ order: Order) async -> Outcome {
        await withTaskGroup(of: Signal.self) { group in
            group.addTask { .ended(await self.perform(order)) }
            group.addTask {
                await self.stopping.becomesTrue()
                return .stop
            }
            if case .directory = order.plan.target.kind {
                group.addTask {
                    await self.awaitName(order)
                    return .named
                }
            }
            var outcome = Outcome.stopped
            while let signal = await group.next() {
                if case .named = signal { continue }
                if case .ended(let result) = signal { outcome = result }
                group.cancelAll()
            }
            return outcome
        }
    }

    private func perform(_ order: Order) async -> Outcome {
        do {
            try Task.checkCancellation()
            var plan = order.plan
            if let prepare = order.prepare {
                let url = order.movedURLs.last ?? plan.url
                let headers = plan.options.headers
                plan.options.headers = try await headers.prepared(for: url, by: prepare)
                plan.options.secretFields.formUnion(plan.options.headers.fields.secretNames(addedTo: headers.fields))
                try Task.checkCancellation()
            }
            let job = order.make(plan, order.status, order.slots)
            for url in order.movedURLs { job.move(to: url) }
            let bandwidth = state.withLock { state in
                state.job = job
                return state.bandwidth
            }
            if let bandwidth { job.setBandwidth(bandwidth) }
            return .finished(try await job.run(onPublication: order.onPublication))
        } catch is CancellationError { return .stopped } catch let error as HTTPError { return .failed(error) } catch {
            return .failed(
                HTTPError(.systemFailed, phase: .processingResponse, message: "\(type(of: error))", underlying: error))
        }
    }

    /// Waits until the path of the file is known, and reports it. The path is checked whenever the progress changes.
    private func awaitName(_ order: Order) async {
        guard await order.status.progress.next(where: { _ in job?.path != nil }) != nil, !Task.isCancelled,
            let path = job?.path
        else { return }
        await order.named(path)
    }
}

/// The controller of a managed download's handle. It retains the manager.
struct ManagedDownload: Download.Controller {
    let id: DownloadID
    let location: DownloadLocation
    let manager: DownloadManager

    var url: HTTPURL { location.url }
    var target: DownloadTarget { location.target }
    var options: DownloadOptions { location.options }
    var path: FilePath? { location.path }

    func pause() async { await manager.pause(id) }
    func resume(from url: HTTPURL?) async throws { try await manager.resume(id, at: url) }
    func cancel() async { await manager.cancel(id) }
    func setPriority(_ priority: DownloadPriority) async throws { try await manager.setPriority(priority, of: id) }
}

extension DownloadJob: RunnableDownload {}

extension DownloadManager {
    /// Opens a directory of downloads, and resumes the unfinished ones.
    ///
    /// - Parameters:
    ///   - directory: The directory; created with its parents if missing. Only its owner may write to it.
    ///   - prepare: Called at the start of each run with the fields of its requests and the URL of the file. It adds
    ///     fields that are not stored, such as `Authorization`, and that are not sent to another origin after a
    ///     redirect. An error that it throws fails the download.
    /// - Throws: An ``HTTPError``: `.alreadyInProgress` if a manager of any process has the directory;
    ///   `.fileFailed` if another user owns it, others may write to it, or it cannot be used.
    public init(
        session: HTTPSession, directory: some FilePathConvertible, limits: DownloadLimits = DownloadLimits(),
        prepare: (@Sendable (inout HTTPHeaders, HTTPURL) async throws -> Void)? = nil
    ) async throws {
        try await self.init(
            session: session, directory: directory.filePath, limits: limits, prepare: prepare,
            make: { plan, status, slots in DownloadJob(plan, session: session, slots: slots, status: status) })
    }

    /// Opens a directory of downloads with a new session, for background transfers that outlive the process. The next
    /// process that opens the directory resumes them, and ``allFinished`` reports when all are over.
    ///
    /// The parameters and errors are those of ``init(session:directory:limits:prepare:)``; the configuration is
    /// ``SessionConfiguration/background`` by default.
    public static func background(
        directory: some FilePathConvertible, configuration: SessionConfiguration = .background,
        limits: DownloadLimits = DownloadLimits(),
        prepare: (@Sendable (inout HTTPHeaders, HTTPURL) async throws -> Void)? = nil
    ) async throws -> DownloadManager {
        try await DownloadManager(
            session: HTTPSession(configuration: configuration), directory: directory, limits: limits, prepare: prepare)
    }
}

extension DownloadStatus {
    /// The states, for iteration.
    var stateSequence: DownloadStates { DownloadStates(states, \.state) }

    /// The progress, for iteration.
    var progressSequence: DownloadProgressSequence { DownloadProgressSequence(progress) { $0 } }

    /// Ends the progress, states and events: the download can no longer change.
    func end() {
        progress.finish()
        states.finish()
        events.end()
    }

    /// Emits an event, and enters the state that follows.
    func report(_ event: DownloadEvent, _ state: DownloadState) {
        events.add(event)
        become(state)
    }

    /// Updates the progress while no run does.
    /// - Parameter isFinished: Whether the last run is over; `false` before a run.
    func settleProgress(isFinished: Bool = true, _ change: (inout DownloadProgress) -> Void = { _ in }) {
        progress.change { value in
            change(&value)
            value.isFinished = isFinished
            value.bytesPerSecond = 0
            value.connectionCount = 0
            value.stalled = .zero
        }
        changed(nil)
    }
}

extension HTTPHeaders {
    /// Returns the fields after the caller's closure changed them. The wait ends when the task is cancelled.
    /// - Throws: An `HTTPError` of the closure; `.invalidRequest` for its other errors; `CancellationError`.
    package func prepared(
        for url: HTTPURL, by prepare: @escaping @Sendable (inout HTTPHeaders, HTTPURL) async throws -> Void
    ) async throws -> HTTPHeaders {
        do {
            return try await waitUnlessCancelled {
                var prepared = self
                try await prepare(&prepared, url)
                return prepared
            }
        } catch let error where !(error is HTTPError) && !(error is CancellationError) {
            try Task.checkCancellation()
            // Only the error's type: the message is stored on disk, and the closure handles secrets.
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message: "the closure that prepares requests threw \(type(of: error))", underlying: error)
        }
    }
}
