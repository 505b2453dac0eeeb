package import MartletCore
import Synchronization

/// Runs a download without a manager.
package final class StandaloneDownload: Download.Controller {
    private struct State {
        var run: Task<Void, Never>?
        var isCancelled = false
    }

    private static let lastNumber = Atomic<UInt64>(0)

    private let job: DownloadJob
    private let status: DownloadStatus
    /// The lock on the state, used by the run and by holders of the handle.
    private let state = Mutex(State())

    init(_ job: DownloadJob, status: DownloadStatus) { (self.job, self.status) = (job, status) }

    package var url: HTTPURL { job.url.withoutUserInfo }
    package var target: DownloadTarget { job.plan.target }
    package var options: DownloadOptions { job.plan.options }
    package var path: FilePath? { job.path }

    static func nextID() -> DownloadID { DownloadID(lastNumber.add(1, ordering: .relaxed).newValue) }

    /// Starts a run, unless one is active or the download is over.
    func begin() {
        state.withLock { state in
            guard state.run == nil, !isOver, !state.isCancelled else { return }
            // Set before the run can enter the next state.
            status.become(.running)
            // Unstructured, because the download outlives the scope that started it.
            state.run = Task { await self.runOnce() }
        }
    }

    private var isOver: Bool { status.state.isFinal }

    /// Runs the download in the calling task, instead of a task of its own as ``begin()`` does. Cancelling the task
    /// pauses the download; the handle cannot pause it.
    package func runOnce() async {
        let outcome: Result<DownloadResult, any Error>
        do { outcome = .success(try await job.run()) } catch { outcome = .failure(error) }
        // Both are set together, so that an observer of the outcome can resume immediately.
        state.withLock { state in
            state.run = nil
            switch outcome {
            case .success(let result):
                status.report(.finished(result), .finished(result))
                status.end()
            case .failure(let error as HTTPError): status.report(.failed(error), .failed(error))
            case .failure where state.isCancelled: break
            // Only a pause and a cancellation cancel the task.
            case .failure where Task.isCancelled: status.report(.paused, .paused)
            case .failure:
                // The program has cancelled a call of the download. A later download can reuse the bytes.
                status.report(.cancelled, .cancelled)
                status.end()
            }
        }
    }

    package func pause() async {
        guard let run = state.withLock({ $0.run }) else { return }
        run.cancel()
        await run.value
    }

    package func resume(from url: HTTPURL?) async throws {
        if isOver {
            throw HTTPError(.invalidRequest, phase: .preparing, message: "the download is over and cannot be resumed")
        }
        guard state.withLock({ $0.run }) == nil else { return }
        if let url { job.move(to: url) }
        begin()
    }

    package func cancel() async {
        guard !isOver else { return }
        let run = state.withLock { state in
            state.isCancelled = true
            return state.run
        }
        run?.cancel()
        await run?.value
        // The run may have finished.
        guard !isOver else { return }
        try? await job.discard()
        // Of several callers only the first reports it.
        state.withLock { _ in
            guard !isOver else { return }
            status.report(.cancelled, .cancelled)
            status.end()
        }
    }

    /// Has no effect: there are no other downloads.
    package func setPriority(_ priority: DownloadPriority) {}
}
