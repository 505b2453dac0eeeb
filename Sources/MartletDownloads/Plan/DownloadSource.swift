package import MartletCore
import MartletStreams

/// A URL of a file: that of the download, or a mirror.
package struct DownloadSource: Sendable {
    /// The purpose for which a URL can be used.
    enum Use: Sendable {
        /// Its bytes belong to the file that is being received, as far as known.
        case parts
        /// It may have another file, or sends no parts: it is used if all others have failed, from the first byte on.
        case wholeFile
        /// It has failed.
        case nothing
    }

    package let url: HTTPURL
    /// The URL at which the file was found; `nil` if it is unknown or no longer valid.
    var foundURL: HTTPURL?
    /// The representation of the received bytes as this server describes it; `nil` before its first accepted response.
    /// An entity tag is valid only for the server that sent it.
    package var representation: Representation?
    /// Whether `If-Range` is omitted, because the server sent the whole file although it is unchanged. Each part then
    /// has to prove its representation.
    var dropsCondition = false
    /// Whether the server supports ranges correctly, as far as known.
    var supportsRanges = true
    var use = Use.parts
    /// The number of failures since the last new byte.
    var failures = 0
    /// The error of the last failure.
    var error: HTTPError?
    /// The end of the delay after a failure.
    var restsUntil: MonotonicTime?
    /// The maximum number of connections while others are active, and its end, after the server or the session had no
    /// slot.
    var limit: (count: Int, lifts: MonotonicTime)?
    /// The rate of the last transfer in bytes per second; `nil` before its end.
    var rate: Double?
    /// Whether the use of the URL was reported.
    var isReported = false
    /// The number of bytes of the file that were received from the URL in this run.
    package var byteCount: UInt64 = 0

    init(_ url: HTTPURL) { self.url = url }

    /// Whether the URL can be requested now.
    func isAvailable(_ now: MonotonicTime) -> Bool { use != .nothing && restsUntil.map { $0 <= now } ?? true }

    /// Whether another connection is allowed besides a number of them.
    func hasRoom(beside count: Int, _ now: MonotonicTime) -> Bool {
        limit.map { $0.lifts <= now || count < $0.count } ?? true
    }
}

/// The decision whether a mirror has the same file.
package enum MirrorRule {
    package enum Decision: Equatable, Sendable {
        /// A strong validator or a digest proves it.
        case same
        /// Only the checksum of the complete file can show it.
        case unproven
        /// The file differs, or nothing would show that it does.
        case other
    }

    /// Compares the first response of a mirror with the received bytes. Both have the same length.
    ///
    /// An entity tag is chosen by each server (RFC 9110 §8.8.3). Mirrors with equal strong tags are assumed to be
    /// coordinated (RFC 6249 §3.3); a date is no proof.
    /// - Parameters:
    ///   - known: The representation of the received bytes.
    ///   - digests: The digests of `Repr-Digest` that were received with them.
    ///   - checksum: The expected checksum.
    package static func decision(
        _ responseHead: DownloadResponseHead, known: Representation, digests: [Checksum], checksum: Checksum?
    ) -> Decision {
        guard known.coding == nil, responseHead.representation.coding == nil else { return .other }
        let expected = digests + (checksum.map { [$0] } ?? [])
        var isProven = false
        for digest in responseHead.digests {
            for other in expected where other.algorithm == digest.algorithm {
                guard other == digest else { return .other }
                isProven = true
            }
        }
        if let mine = known.entityTag, let its = responseHead.representation.entityTag, mine.matchesStrongly(its) {
            isProven = true
        }
        return isProven ? .same : checksum == nil ? .other : .unproven
    }
}

extension DownloadOptions {
    /// The maximum number of mirrors: 100.
    public static let mirrorLimit = 100

    /// Whether the mirrors of a URL must use `https`. An attacker between the client and an `http` mirror could replace
    /// the bytes, which the `https` URL would have prevented.
    func needsSecureMirrors(of url: HTTPURL) -> Bool {
        url.scheme == .https && checksum?.detectsForgery != true
    }

    /// Checks the mirrors of a URL.
    package func checkMirrors(of url: HTTPURL) throws(HTTPError) {
        var message: String?
        if mirrors.count > DownloadOptions.mirrorLimit {
            message = "there are \(mirrors.count) mirrors, and the limit is \(DownloadOptions.mirrorLimit)"
        }
        if needsSecureMirrors(of: url), let mirror = mirrors.first(where: { $0.scheme == .http }) {
            message = "the mirror \(mirror.redacted) of an https URL needs https, or a SHA-2 checksum"
        }
        guard let message else { return }
        throw HTTPError(.invalidRequest, phase: .preparing, message: message, method: .get, url: url)
    }
}
