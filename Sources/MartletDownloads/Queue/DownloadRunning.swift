package import MartletClient
package import MartletConnections
package import SystemPackage

/// What a manager asks of a download: one file, as often as it is run.
package protocol DownloadRunning: Sendable {
    /// Runs until the file is there. Cancelling the task keeps what has come and throws `CancellationError`.
    /// - Parameter noting: Told what is to be known of the file before it gets its name; returns when that is on the disk.
    /// - Throws: An ``HTTPError``; `CancellationError`; what `noting` throws.
    func run(noting: @escaping DownloadJob.Noting) async throws -> DownloadResult
    /// Says where the file is now, before the next run.
    func move(to url: HTTPURL)
    /// Changes how fast it may go, at once.
    func setBandwidth(_ rate: BandwidthRate?)
    /// Removes what has come; not while it runs.
    func discard() async throws
    /// The file's name, once it is known.
    var path: FilePath? { get }
}

/// Makes what runs a download.
package typealias DownloadFactory =
    @Sendable (DownloadJob.Plan, DownloadStatus, any ConnectionSlots) -> any DownloadRunning
