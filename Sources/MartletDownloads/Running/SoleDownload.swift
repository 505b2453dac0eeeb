import MartletClient
import Synchronization
import SystemPackage

/// Runs a download that belongs to no manager.
actor SoleDownload: Download.Controller {
    private static let lastNumber = Atomic<UInt64>(0)

    private let job: DownloadJob
    private let status: DownloadStatus
    /// The run that is on, or ended last.
    private var run: Task<Void, Never>?
    private var isRunning = false
    private var isCancelled = false
    /// Whether it was paused before it began.
    private var isHeld = false

    init(_ job: DownloadJob, status: DownloadStatus) {
        self.job = job
        self.status = status
    }

    nonisolated var url: HTTPURL { job.url.withoutUserInfo }
    nonisolated var target: DownloadTarget { job.plan.target }
    nonisolated var path: FilePath? { job.path }

    static func nextID() -> DownloadID { DownloadID(lastNumber.add(1, ordering: .relaxed).newValue) }

    func begin() {
        guard !isRunning, !isOver, !isCancelled else { return }
        guard !isHeld else { return }
        isRunning = true
        status.become(.running)
        // Unstructured, since the download is its holder's and not its maker's: it outlives the scope that began it.
        run = Task { await self.runOnce() }
    }

    private var isOver: Bool {
        switch status.state {
        case .finished, .cancelled: true
        case .failed, .waiting, .running, .verifying, .paused: false
        }
    }

    private func runOnce() async {
        do {
            let result = try await job.run()
            status.events.add(.finished(result))
            status.become(.finished(result))
            status.end()
        } catch let error as HTTPError {
            status.events.add(.failed(error))
            status.become(.failed(error))
        } catch {
            if !isCancelled {
                status.events.add(.paused)
                status.become(.paused)
            }
        }
        isRunning = false
    }

    func pause() async {
        guard let run else {
            guard !isHeld, !isCancelled else { return }
            isHeld = true
            status.events.add(.paused)
            status.become(.paused)
            return
        }
        guard isRunning else { return }
        run.cancel()
        await run.value
    }

    func resume(from url: HTTPURL?) async throws {
        if isOver {
            throw HTTPError(
                .invalidRequest, phase: .preparing, message: "the download is over and cannot be resumed")
        }
        guard !isRunning else { return }
        if let url { job.move(to: url) }
        isHeld = false
        begin()
    }

    func cancel() async {
        guard !isOver else { return }
        isCancelled = true
        if let run {
            run.cancel()
            await run.value
        }
        // It may have been faster.
        guard !isOver else { return }
        try? await job.discard()
        status.events.add(.cancelled)
        status.become(.cancelled)
        status.end()
    }

    /// There are none that it could go before.
    func setPriority(_ priority: DownloadPriority) {}
}
