package import MartletTesting
import MartletWire

/// The behavior of a range origin: its versions, its handling of ranges and its faults.
package struct RangeBehavior: Sendable {
    /// The handling of the Range field.
    package enum Ranges: Hashable, Sendable {
        /// Ranges are served (RFC 9110 §14).
        case served
        /// Ranges are ignored: each response is the whole file.
        case ignored
        /// Ranges are ignored if there is an If-Range, whatever its value, as some caches do.
        case ignoredWithIfRange
    }

    /// The event after which the next version replaces the current one.
    package enum Flip: Hashable, Sendable {
        /// The next version follows after a number of requests.
        case afterRequests(Int)
        /// The next version follows as soon as a number of body bytes was sent.
        case afterBytes(UInt64)
    }

    /// The served versions in order; never empty.
    package var versions: [RangeVersion]
    /// The ends of all versions except the last.
    package var flips: [Flip] = []
    /// Whether responses of the old version are truncated at a flip, as by a server that restarts.
    package var cutsAtFlips = false
    /// The handling of Range; served by default.
    package var ranges = Ranges.served
    /// Whether If-Range is evaluated; otherwise a response can be a part of another version.
    package var heedsIfRange = true
    /// The framing of the bodies.
    package var framing = OriginFraming.automatic
    /// Additional fields of each response.
    package var fields = OriginFields()
    /// The Date of responses in seconds since 1970; `nil` for the current time.
    package var date: Int64?
    /// The speed of bodies on each connection.
    package var pace: RangePace?
    /// The changes of responses; all that apply run in order.
    package var acts: [RangeResponseOverride] = []

    /// Creates the behavior of a correct origin that serves the versions.
    package init(_ versions: RangeVersion..., acts: [RangeResponseOverride] = []) {
        self.versions = versions
        self.acts = acts
    }

    /// Returns a changed copy of this behavior.
    package func with(_ change: (inout RangeBehavior) -> Void) -> RangeBehavior {
        var copy = self
        change(&copy)
        return copy
    }

    /// Formats a date as HTTP does.
    package static func date(_ secondsSinceEpoch: Int64) -> String {
        HTTPDate(secondsSinceEpoch: secondsSinceEpoch).text
    }

    /// Returns the index of the version after a number of requests and bytes, from 0.
    func versionIndex(requests: Int, bytes: UInt64) -> Int {
        let passed = flips.filter { flip in
            switch flip {
            case .afterRequests(let count): requests > count
            case .afterBytes(let count): bytes >= count
            }
        }
        return min(passed.count, versions.count - 1)
    }

    /// Returns the response decision for a request on a version.
    func decision(on request: RangeRequest, _ version: RangeVersion) -> ContentDecision {
        var fields = request.fields
        switch ranges {
        case .served: break
        case .ignored: fields["Range"] = nil
        case .ignoredWithIfRange: if fields.contains("If-Range") { fields["Range"] = nil }
        }
        if !heedsIfRange { fields["If-Range"] = nil }
        return ContentDecision(
            method: request.method, headers: fields, entityTag: version.entityTag,
            lastModified: version.lastModified.map { HTTPDate(secondsSinceEpoch: $0) },
            length: version.byteCount)
    }
}

/// A change that a range origin makes to the responses of some requests.
package struct RangeResponseOverride: Sendable {
    /// Whether the change applies to a request.
    package var applies: @Sendable (RangeRequest) -> Bool
    /// The change of the response.
    package var change: @Sendable (inout RangeResponse) -> Void

    /// Creates an override from a condition and a change.
    package init(
        on applies: @escaping @Sendable (RangeRequest) -> Bool,
        _ change: @escaping @Sendable (inout RangeResponse) -> Void
    ) {
        self.applies = applies
        self.change = change
    }

    /// Changes each response.
    package static func always(_ change: @escaping @Sendable (inout RangeResponse) -> Void)
        -> RangeResponseOverride
    {
        RangeResponseOverride(on: { _ in true }, change)
    }

    /// Changes the response to one request, by its number.
    package static func onRequest(
        _ number: Int, _ change: @escaping @Sendable (inout RangeResponse) -> Void
    ) -> RangeResponseOverride {
        RangeResponseOverride(on: { $0.number == number }, change)
    }

    /// Changes the responses to requests with a range.
    package static func onRanges(_ change: @escaping @Sendable (inout RangeResponse) -> Void)
        -> RangeResponseOverride
    {
        RangeResponseOverride(on: { $0.range != nil }, change)
    }

    /// Changes the responses to requests that start after the first byte.
    package static func onResumptions(_ change: @escaping @Sendable (inout RangeResponse) -> Void)
        -> RangeResponseOverride
    {
        RangeResponseOverride(on: { $0.isResumption }, change)
    }

    /// Ends the connection in the body of the response to one request.
    package static func cut(
        request number: Int, after byteCount: UInt64, by kind: OriginFault.Kind = .close
    ) -> RangeResponseOverride {
        .onRequest(number) { $0.fault = OriginFault(kind, afterBodyBytes: byteCount) }
    }

    /// Holds the response to one request: after `byteCount` bytes it raises the signal `name` and waits for `name go`.
    package static func hold(request number: Int, after byteCount: UInt64, _ name: String)
        -> RangeResponseOverride
    {
        .onRequest(number) { $0.gate = (name, byteCount) }
    }

    /// Replaces the responses to requests from one number on.
    package static func answer(
        from number: Int, through last: Int = .max, _ response: OriginResponse
    ) -> RangeResponseOverride {
        RangeResponseOverride(on: { $0.number >= number && $0.number <= last }) { $0.replacement = response }
    }
}

/// The planned response of a range origin: the correct response at first, which a ``RangeResponseOverride`` can change.
package struct RangeResponse: Sendable {
    /// The status: 200, 206 or 416 at first.
    package var status: Int
    /// The fields, without those of the framing.
    package var fields: OriginFields
    /// The range of the version's bytes to send.
    package var body: Range<UInt64>
    /// The number of additional bytes after the body.
    package var surplus: UInt64 = 0
    /// Bytes that replace the version's; `nil` for the version's own.
    package var contents: [UInt8]?
    /// The Content-Length, correct or not; `nil` for the one of ``framing``.
    package var declaredByteCount: UInt64?
    /// The framing of the body.
    package var framing = OriginFraming.automatic
    /// An injected fault of the response, `nil` by default.
    package var fault: OriginFault?
    /// The speed of the body; `nil` for the speed at which the client reads.
    package var pace: RangePace?
    /// A signal name and a number of body bytes. After these bytes the signal is raised, and the signal with the suffix
    /// ` go` is awaited.
    package var gate: (name: String, byteCount: UInt64)?
    /// A response that replaces all of the above.
    package var replacement: OriginResponse?
    /// The requested bounds; `nil` without a range.
    package let asked: Range<UInt64>?
    /// The version of the response.
    package let version: RangeVersion

    init(to request: RangeRequest, of version: RangeVersion, by conduct: RangeBehavior) {
        self.version = version
        framing = conduct.framing
        pace = conduct.pace
        fields = conduct.fields
        if let entityTag = version.entityTag { fields["ETag"] = entityTag }
        if let lastModified = version.lastModified {
            fields["Last-Modified"] = RangeBehavior.date(lastModified)
        }
        if let date = conduct.date { fields["Date"] = RangeBehavior.date(date) }
        switch conduct.decision(on: request, version) {
        case .part(let range, let total):
            status = 206
            body = range
            asked = range
            fields["Content-Range"] = RangeResponse.contentRange(range, total)
        case .unsatisfiable(let total):
            status = 416
            body = 0..<0
            asked = nil
            fields["Content-Range"] = "bytes */\(total)"
        case .whole, .notModified, .preconditionFailed:
            status = 200
            body = 0..<version.byteCount
            asked = nil
        }
    }

    /// Formats a Content-Range.
    package static func contentRange(_ range: Range<UInt64>, _ total: UInt64) -> String {
        "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)"
    }

    /// Sends another range than the requested one, with a matching Content-Range.
    package mutating func send(_ range: Range<UInt64>) {
        body = range
        fields["Content-Range"] = RangeResponse.contentRange(range, version.byteCount)
    }
}

/// The speed at which a range origin sends on each connection.
package struct RangePace: Hashable, Sendable {
    /// The speed in bytes per second, at least 1.
    package var bytesPerSecond: Int
    /// The number of response bytes after which ``laterBytesPerSecond`` applies.
    package var changesAfter: UInt64?
    /// The later speed in bytes per second, at least 1.
    package var laterBytesPerSecond: Int

    /// Creates a pace, which can change once per response.
    package init(_ bytesPerSecond: Int, changingAfter count: UInt64? = nil, to later: Int? = nil) {
        self.bytesPerSecond = max(1, bytesPerSecond)
        changesAfter = count
        laterBytesPerSecond = max(1, later ?? bytesPerSecond)
    }

    /// Returns the pause after a piece that ends at an offset of the response.
    package func pause(after count: Int, endingAt offset: UInt64) -> Duration {
        let isLater = changesAfter.map { offset > $0 } ?? false
        return .seconds(Double(count) / Double(isLater ? laterBytesPerSecond : bytesPerSecond))
    }

    /// Returns the size of a piece: the bytes of a twentieth of a second, at most 64 KiB.
    package func pieceSize(at offset: UInt64) -> Int {
        let isLater = changesAfter.map { offset >= $0 } ?? false
        return min(64 << 10, max(1, (isLater ? laterBytesPerSecond : bytesPerSecond) / 20))
    }
}

/// A request to a range origin and its response.
package struct RangeRequest: Sendable {
    /// The number of the request among all requests of the behavior, from 1.
    package var number: Int
    /// The number of its connection, from 1.
    package var connection: Int
    /// The method as sent.
    package var method: HTTPRequest.Method
    /// The request target as sent.
    package var target: String
    /// The fields as sent.
    package var fields: OriginFields
    /// The value of Range, or `nil`.
    package var range: String?
    /// The first requested byte: 0 without a Range, and `nil` if it is invalid or counts from the end.
    package var start: UInt64?
    /// The last requested byte; `nil` for an open range.
    package var end: UInt64?
    /// The value of If-Range, or `nil`.
    package var ifRange: String?
    /// The status of the response.
    package var status = 0
    /// The Content-Range of the response, with several fields joined, or `nil`.
    package var contentRange: String?
    /// The index of the response's version, from 0, or `nil`.
    package var version: Int?
    /// The number of body bytes that were passed to the system.
    package var sentByteCount: UInt64 = 0

    /// Whether the request starts after the first byte.
    package var isResumption: Bool { range != nil && start != 0 }

    init(_ request: OriginRequest, number: Int) {
        self.number = number
        connection = request.connection.number
        method = request.method
        target = request.target
        fields = request.headers
        range = request.headers["Range"]
        ifRange = request.headers["If-Range"]
        (start, end) = RangeRequest.bounds(of: range)
    }

    /// Returns the bounds of a single byte range.
    private static func bounds(of field: String?) -> (start: UInt64?, end: UInt64?) {
        guard let field else { return (0, nil) }
        guard field.hasPrefix("bytes=") else { return (nil, nil) }
        let parts = field.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return (nil, nil) }
        return (UInt64(parts[0]), UInt64(parts[1]))
    }
}
