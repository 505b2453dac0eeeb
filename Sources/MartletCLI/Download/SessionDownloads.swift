import Martlet
import MartletDownloads

/// Downloads of a session, without a queue that outlives the program.
struct SessionDownloads: DownloadStarting {
    /// The session.
    let session: HTTPSession

    func begin(_ plan: DownloadPlan) async throws -> Download {
        session.beginDownload(plan.url, to: plan.target, options: plan.options)
    }

    func stop(_ downloads: [Download]) async {
        await withTaskGroup(of: Void.self) { group in
            for download in downloads { group.addTask { await download.pause() } }
        }
    }
}
