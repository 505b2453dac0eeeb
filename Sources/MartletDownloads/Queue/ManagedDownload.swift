import MartletClient

/// What the handle of a managed download does goes to its manager, which the handle keeps.
struct ManagedDownload: Download.Controller {
    let id: DownloadID
    let manager: DownloadManager

    func pause() async { await manager.pause(id) }

    func resume(from url: HTTPURL?) async throws { try await manager.resume(id, at: url) }

    func cancel() async { await manager.cancel(id) }

    func setPriority(_ priority: DownloadPriority) async { await manager.setPriority(priority, of: id) }
}
