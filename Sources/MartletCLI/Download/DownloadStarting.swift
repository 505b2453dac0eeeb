import Martlet

/// What begins downloads for the runner, and stops them.
protocol DownloadStarting: Sendable {
    /// Does what has to be done before the first one begins.
    func prepare() async
    /// Begins one, or gives it its place in a queue.
    /// - Throws: Why it cannot be begun: an `HTTPError`.
    func begin(_ plan: DownloadPlan) async throws -> Download
    /// Stops downloads so that they can be gone on with, in another process too; returns when nothing of them is open.
    func stop(_ downloads: [Download]) async
    /// That one is complete was told, and need not be told again.
    func forget(_ download: Download) async
}

extension DownloadStarting {
    func prepare() async {}

    func forget(_ download: Download) async {}
}
