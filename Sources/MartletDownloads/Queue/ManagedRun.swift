import MartletURL
public import MartletCore
import MartletDiagnostics
import MartletHosts
import MartletStreams
import MartletConnections
import MartletTransport
import Synchronization
public import SystemPackage

/// One run of a managed download: what makes it stop, and what waits for its end.
final class ManagedRun: Sendable {
    /// How it ended.
    package enum Outcome: Sendable {
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

/// What the handle of a managed download does goes to its manager, which the handle keeps.
struct ManagedDownload: Download.Controller {
    let id: DownloadID
    let place: DownloadPlace
    let manager: DownloadManager

    var url: HTTPURL { place.url }
    var target: DownloadTarget { place.target }
    var path: FilePath? { place.path }

    func pause() async { await manager.pause(id) }

    func resume(from url: HTTPURL?) async throws { try await manager.resume(id, at: url) }

    func cancel() async { await manager.cancel(id) }

    func setPriority(_ priority: DownloadPriority) async { await manager.setPriority(priority, of: id) }
}

extension DownloadJob: DownloadRunning {}

extension DownloadManager {
    /// Opens a directory of downloads, and goes on with those that are not over.
    ///
    /// - Parameters:
    ///   - session: What makes the requests.
    ///   - directory: The folder; it is made, with those above it, where it is missing. Nobody but its owner may be able to
    ///     write to it.
    ///   - limits: How much is done at once.
    ///   - prepare: Called at the beginning of each run with the fields of its requests and the place of the file, to add
    ///     what is not kept on disk, such as `Authorization`; what it throws fails the download.
    /// - Throws: An ``MartletCore/HTTPError``: `.alreadyInProgress` where another manager has the directory, in this process
    ///   or another one; `.fileFailed` where it belongs to another user, others may write to it, or it cannot be used.
    public init(
        session: HTTPSession, directory: FilePath, limits: DownloadLimits = DownloadLimits(),
        prepare: (@Sendable (inout HTTPFields, HTTPURL) async throws -> Void)? = nil
    ) async throws {
        try await self.init(
            session: session, directory: directory, limits: limits, prepare: prepare,
            make: { plan, status, slots in DownloadJob(plan, session: session, slots: slots, status: status) }
        )
    }

    /// Opens a directory of downloads with a session of its own: transfers in the background, which belong to the directory
    /// and outlive the process. Whoever opens it next goes on with them, and ``allFinished`` says when all are over.
    ///
    /// - Parameters:
    ///   - directory: The folder; else as ``init(session:directory:limits:prepare:)``.
    ///   - configuration: The session's; ``MartletCore/SessionConfiguration/background`` by default.
    ///   - limits: How much is done at once.
    ///   - prepare: As with that initialiser.
    /// - Throws: As that initialiser.
    public static func background(
        directory: FilePath, configuration: SessionConfiguration = .background,
        limits: DownloadLimits = DownloadLimits(),
        prepare: (@Sendable (inout HTTPFields, HTTPURL) async throws -> Void)? = nil
    ) async throws -> DownloadManager {
        try await DownloadManager(
            session: HTTPSession(configuration: configuration), directory: directory, limits: limits,
            prepare: prepare)
    }
}

extension DownloadStatus {
    /// Ends what is told of the download: it can no longer change.
    func end() {
        progress.finish()
        states.finish()
        events.end()
    }

    /// Tells what has happened, and goes over to the state that follows.
    func tell(_ event: DownloadEvent, _ state: DownloadState) {
        events.add(event)
        become(state)
    }

    /// Says how far the download has come, while no run says it.
    /// - Parameter isFinished: Whether a run is over, rather than one to come.
    func settleProgress(isFinished: Bool = true, _ change: (inout DownloadProgress) -> Void = { _ in }) {
        var value = progress.value
        change(&value)
        value.isFinished = isFinished
        value.bytesPerSecond = 0
        value.connectionCount = 0
        value.stalled = .zero
        let settled = value
        progress.update { settled }
    }
}
