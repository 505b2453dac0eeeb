import MartletURL
import MartletCore
import MartletStreams
import Synchronization
import SystemPackage

/// Runs a download that belongs to no manager.
final class SoleDownload: Download.Controller {
    private struct State {
        /// The run that is on, or ended last.
        var run: Task<Void, Never>?
        var isRunning = false
        var isCancelled = false
        /// Whether what has come is removed.
        var isDiscarded = false
    }

    private static let lastNumber = Atomic<UInt64>(0)

    private let job: DownloadJob
    private let status: DownloadStatus
    /// Guards the above: the run, and whoever holds the download.
    private let state = Mutex(State())

    init(_ job: DownloadJob, status: DownloadStatus) {
        self.job = job
        self.status = status
    }

    var url: HTTPURL { job.url.withoutUserInfo }
    var target: DownloadTarget { job.plan.target }
    var path: FilePath? { job.path }

    static func nextID() -> DownloadID { DownloadID(lastNumber.add(1, ordering: .relaxed).newValue) }

    /// Runs it, where it does not run and is not over.
    func begin() {
        state.withLock { state in
            guard !state.isRunning, !isOver, !state.isCancelled else { return }
            state.isRunning = true
            // Before the run can say what comes behind it.
            status.become(.running)
            // Unstructured, since the download is its holder's and not its maker's: it outlives the scope that began it.
            state.run = Task { await self.runOnce() }
        }
    }

    private var isOver: Bool {
        switch status.state {
        case .finished, .cancelled: true
        case .failed, .waiting, .running, .verifying, .paused: false
        }
    }

    private func runOnce() async {
        let outcome: Result<DownloadResult, any Error>
        do {
            outcome = .success(try await job.run())
        } catch {
            outcome = .failure(error)
        }
        // At once, so that whoever sees how it ended can go on with it.
        state.withLock { state in
            state.isRunning = false
            switch outcome {
            case .success(let result):
                status.tell(.finished(result), .finished(result))
                status.end()
            case .failure(let error as HTTPError): status.tell(.failed(error), .failed(error))
            case .failure where state.isCancelled: break
            case .failure: status.tell(.paused, .paused)
            }
        }
    }

    func pause() async {
        guard let run = state.withLock({ $0.isRunning ? $0.run : nil }) else { return }
        run.cancel()
        await run.value
    }

    func resume(from url: HTTPURL?) async throws {
        if isOver {
            throw HTTPError(
                .invalidRequest, phase: .preparing, message: "the download is over and cannot be resumed")
        }
        guard !state.withLock({ $0.isRunning }) else { return }
        if let url { job.move(to: url) }
        begin()
    }

    func cancel() async {
        guard !isOver else { return }
        let run = state.withLock { state in
            state.isCancelled = true
            return state.run
        }
        run?.cancel()
        await run?.value
        // It may have been faster.
        guard !isOver else { return }
        try? await job.discard()
        // Of several who cancel it one tells.
        let isFirst = state.withLock { state in
            defer { state.isDiscarded = true }
            return !state.isDiscarded
        }
        guard isFirst else { return }
        status.tell(.cancelled, .cancelled)
        status.end()
    }

    /// There are none that it could go before.
    func setPriority(_ priority: DownloadPriority) {}
}
