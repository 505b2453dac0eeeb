public import MartletClient
public import SystemPackage

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
    /// - Throws: An ``MartletClient/HTTPError``: `.alreadyInProgress` where another manager has the directory, in this process
    ///   or another one; `.fileFailed` where it belongs to another user, others may write to it, or it cannot be used.
    public init(
        session: HTTPSession, directory: FilePath, limits: DownloadLimits = DownloadLimits(),
        prepare: (@Sendable (inout HTTPFields, HTTPURL) async throws -> Void)? = nil
    ) async throws {
        try await self.init(
            session: session, directory: directory, limits: limits, prepare: prepare,
            make: { plan, status, slots in
                DownloadJob(plan, session: session, slots: slots, status: status)
            })
    }

    /// Opens a directory of downloads with a session of its own: transfers in the background, which belong to the directory
    /// and outlive the process. Whoever opens it next goes on with them, and ``allFinished`` says when all are over.
    ///
    /// - Parameters:
    ///   - directory: The folder; else as ``init(session:directory:limits:prepare:)``.
    ///   - configuration: The session's; ``MartletClient/SessionConfiguration/background`` by default.
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
