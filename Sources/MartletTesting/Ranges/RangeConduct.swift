import MartletWire

/// How a range origin behaves, as a value: what it serves, how it deals with ranges, and what goes wrong.
package struct RangeConduct: Sendable {
    /// What becomes of the field Range.
    package enum Ranges: Hashable, Sendable {
        /// It is heeded (RFC 9110 §14).
        case served
        /// It is ignored: each answer is the whole file.
        case ignored
        /// It is ignored where there is If-Range, whatever that says, as some caches do.
        case ignoredWithIfRange
    }

    /// When the next version takes the place of the present one.
    package enum Flip: Hashable, Sendable {
        /// Behind so many requests.
        case afterRequests(Int)
        /// As soon as so many bytes of bodies were sent.
        case afterBytes(UInt64)
    }

    /// What is served, one version after the other; never empty.
    package var versions: [RangeVersion]
    /// When each but the last version ends.
    package var flips: [Flip] = []
    /// Whether answers of the old version are cut when the next one comes, as by a server that starts anew.
    package var cutsAtFlips = false
    /// What becomes of Range.
    package var ranges = Ranges.served
    /// Whether If-Range is heeded; one that does not may answer with a part of another version.
    package var heedsIfRange = true
    /// How the length of bodies is told.
    package var framing = OriginFraming.automatic
    /// Fields of each answer besides its own.
    package var fields = OriginFields()
    /// The Date of answers, in seconds since 1970; `nil` for the present.
    package var date: Int64?
    /// How fast bodies are sent on each connection.
    package var pace: RangePace?
    /// What is done to answers, all that apply in this order.
    package var acts: [RangeAct] = []

    /// The conduct of a good origin that serves these versions.
    package init(_ versions: RangeVersion..., acts: [RangeAct] = []) {
        self.versions = versions
        self.acts = acts
    }

    /// This conduct after a change.
    package func with(_ change: (inout RangeConduct) -> Void) -> RangeConduct {
        var copy = self
        change(&copy)
        return copy
    }

    /// A date as HTTP writes it.
    package static func date(_ secondsSinceEpoch: Int64) -> String {
        HTTPDate(secondsSinceEpoch: secondsSinceEpoch).text
    }

    /// Which version is served after so many requests and bytes, from 0.
    func versionIndex(requests: Int, bytes: UInt64) -> Int {
        let passed = flips.filter { flip in
            switch flip {
            case .afterRequests(let count): requests > count
            case .afterBytes(let count): bytes >= count
            }
        }
        return min(passed.count, versions.count - 1)
    }

    /// What a request gets of a version.
    func decision(on request: RangeRequest, _ version: RangeVersion) -> ContentDecision {
        var fields = request.fields
        switch ranges {
        case .served: break
        case .ignored: fields["Range"] = nil
        case .ignoredWithIfRange: if fields.contains("If-Range") { fields["Range"] = nil }
        }
        if !heedsIfRange { fields["If-Range"] = nil }
        return ContentDecision(
            request: ContentDecision.Request(method: request.method, fields: fields),
            entityTag: version.entityTag,
            lastModified: version.lastModified.map { HTTPDate(secondsSinceEpoch: $0) },
            length: version.byteCount)
    }
}
