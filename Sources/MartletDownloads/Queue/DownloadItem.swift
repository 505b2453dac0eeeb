import MartletURL
package import MartletCore
import MartletHosts
package import SystemPackage

/// What is known of a download of a manager's, and what of it outlives the process.
package struct DownloadItem: Sendable {
    /// What it was doing, as far as that outlives the process.
    package enum Stage: Sendable {
        /// It waits, or ran when the process ended.
        case waiting
        /// It is paused.
        case paused
        /// It was cancelled, and what has come of it is still to be removed.
        case cancelled
        /// Its file is there.
        case finished(DownloadResult)
        /// It failed.
        case failed(HTTPError)
    }

    /// Its number.
    package var id: DownloadID
    /// Its place in the line: those with lower numbers came first.
    package var order: UInt64
    /// How urgent it is.
    package var priority = DownloadPriority.normal
    /// What it was doing.
    package var stage = Stage.waiting
    /// Where the file was said to be when the download was added. Its user info is not written to disk.
    package var url: HTTPURL
    /// Where it was said to be since, in this order, the last one counting; as ``url`` where there is none. The earlier ones
    /// are kept since what has come may be known by them.
    package private(set) var movedURLs: [HTTPURL] = []
    /// Where it goes; absolute.
    package var target: DownloadTarget
    /// The file's name, once it is known.
    package var path: FilePath?
    /// How it is downloaded. What holds credentials is not written to disk.
    package var options = DownloadOptions()
    /// How many bytes are there, as far as was noted last.
    package var completedByteCount: UInt64 = 0
    /// How many bytes there are in all; `nil` while that is not known.
    package var totalByteCount: UInt64?

    /// What is known of the file that was to get its name, until it is known what came of that.
    package var publication: DownloadPublication?

    /// How many later places are kept.
    package static let moveLimit = 8

    /// Says where the file is from now on.
    package mutating func move(to url: HTTPURL) {
        guard url != place else { return }
        movedURLs.append(url)
        if movedURLs.count > DownloadItem.moveLimit { movedURLs.removeFirst() }
    }

    /// Where the file is.
    package var place: HTTPURL { movedURLs.last ?? url }

    /// The host and the port of the file's place, by which downloads are counted.
    package var host: String { "\(place.host):\(place.port)" }

    /// What is run: into the folder as long as the name is not known, and to the file of that name from then on.
    package var plan: DownloadJob.Plan {
        DownloadJob.Plan(
            url: url, target: path.map { .file($0) } ?? target, options: options, publication: publication)
    }

    /// The file's name, as far as it is known; for telling two downloads of one file.
    package var claim: String? {
        if let path { return path.lexicallyNormalized().string }
        guard case .file(let path) = target else { return nil }
        return path.lexicallyNormalized().string
    }
}
