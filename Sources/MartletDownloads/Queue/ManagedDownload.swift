import MartletClient
import SystemPackage

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
