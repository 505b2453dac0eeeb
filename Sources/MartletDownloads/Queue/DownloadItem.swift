package import MartletCore

/// A download of a manager, as it is stored across processes.
package struct DownloadItem: Sendable {
    /// The stored state.
    package enum Stage: Sendable {
        /// The download is queued, or ran when the process ended.
        case waiting
        case paused
        /// The download was cancelled, and its received bytes are still to be removed.
        case cancelled
        /// The file is complete.
        case finished(DownloadResult)
        /// The download failed with this error.
        case failed(HTTPError)
    }

    /// The number of the download in its directory.
    package var id: DownloadID
    /// The position in the queue, lower numbers first.
    package var order: UInt64
    package var priority = DownloadPriority.normal
    /// The stored state of the download.
    package var stage = Stage.waiting
    /// The URL with which the download was added. Its user info is not written to disk.
    package var url: HTTPURL
    /// The URLs given later; the last one is current. The received bytes may be recorded under the earlier ones.
    package private(set) var movedURLs: [HTTPURL] = []
    /// The target; absolute.
    package var target: DownloadTarget
    /// The path of the file, once it is known.
    package var path: FilePath?
    /// The options. Parts with credentials are not written to disk.
    package var options = DownloadOptions()
    /// The number of received bytes when the item was last written.
    package var completedByteCount: UInt64 = 0
    /// The length of the file; `nil` while it is unknown.
    package var totalByteCount: UInt64?
    /// The record of a complete file that is about to get its name; `nil` once the outcome is known.
    package var publication: PublicationRecord?
    /// The maximum number of later URLs.
    package static let moveLimit: UInt8 = 8

    /// Changes the current URL.
    package mutating func move(to url: HTTPURL) {
        let url = url.withoutFragment
        guard url != currentURL else { return }
        movedURLs.append(url)
        if movedURLs.count > DownloadItem.moveLimit { movedURLs.removeFirst() }
    }

    /// The current URL.
    package var currentURL: HTTPURL { movedURLs.last ?? url }

    /// The host and the port of the current URL, by which downloads are counted.
    package var host: String { "\(currentURL.host):\(currentURL.port)" }

    /// The plan of a run. Its target is the directory while the file name is unknown, later that file.
    package var plan: DownloadJob.Plan {
        DownloadJob.Plan(url: url, target: path.map { .file($0) } ?? target, options: options, publication: publication)
    }

    /// The path of the file, if known or given.
    package var file: FilePath? {
        if path == nil, case .file(let file) = target.kind { return file }
        return path
    }

    /// Whether a new download has the same target, and one of the URLs of this one. Signatures are not compared.
    /// - Parameter unsigned: The URL of the new download without its signature.
    func isSameTransfer(as new: DownloadItem, at unsigned: String) -> Bool {
        guard target == new.target else { return false }
        let urls = [url] + movedURLs
        return urls.contains { $0.path == new.url.path && SignedURL.unsigned($0.absoluteForm) == unsigned }
    }

    /// Whether a checksum is that of the options, or one that the file was compared with.
    func verifies(_ checksum: Checksum) -> Bool {
        if case .finished(let result) = stage, result.verified.contains(checksum) { return true }
        return options.checksum == checksum
    }

    /// The normalized path of the file, by which two downloads of one file are detected.
    package var claim: String? { file?.lexicallyNormalized().string }
}
