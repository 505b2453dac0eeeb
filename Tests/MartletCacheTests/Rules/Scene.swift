import MartletCache
import MartletWire

/// Test messages as text, and times in seconds from a fixed start.
enum Scene {
    /// The time at which stored responses were requested and received: Fri, 15 Jan 2027 08:00:00 GMT.
    static let start: Int64 = 1_800_000_000
    static let url = "https://example.com/a"

    static func at(_ seconds: Int64) -> WallTime { WallTime(seconds: start + seconds) }

    /// Parses fields, one per line. `{-60}` is replaced by the date 60 seconds before the start.
    static func fields(_ text: String) -> FieldBlock {
        var block = FieldBlock()
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let value = String(parts.count > 1 ? parts[1] : "")
            block.append(name: String(parts[0]), value: dated(String(value.drop { $0 == " " })))
        }
        return block
    }

    private static func dated(_ value: String) -> String {
        guard let open = value.firstIndex(of: "{"), let close = value.lastIndex(of: "}"),
            let seconds = Int64(value[value.index(after: open)..<close])
        else { return value }
        return value[..<open] + HTTPDate(secondsSinceEpoch: start + seconds).text
            + value[value.index(after: close)...]
    }

    static func request(
        _ text: String = "", method: String = "GET", mode: CacheMode = .standard, partition: String = "",
        keyedDigest: (@Sendable (String) -> String)? = nil
    ) -> CacheRequest {
        CacheRequest(
            method: method, key: CacheKey(url: url, partition: partition), fields: fields(text), mode: mode,
            keyedDigest: keyedDigest)
    }

    static func response(_ status: Int = 200, _ text: String = "") -> ResponseHead {
        ResponseHead(status: status, reason: "R", fields: fields(text))
    }

    /// Returns a stored response without applying the storage rules.
    static func stored(
        _ text: String, status: Int = 200, length: UInt64 = 1000, came: Int64 = 0, delay: Int64 = 0,
        selections: [StoredHead.Selection] = [], partition: String = "", wasAuthorized: Bool = false
    ) -> StoredVariant {
        let head = StoredHead(
            key: CacheKey(url: url, partition: partition), status: status, reason: "R", fields: fields(text),
            selections: selections, requestTime: at(came - delay), responseTime: at(came),
            wasAuthorized: wasAuthorized)
        return StoredVariant(head: head, bodyLength: length)
    }

    /// Returns the fields as text, one per line.
    static func text(_ fields: FieldBlock) -> String {
        fields.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
    }

    /// Returns a decision as a few words.
    static func words(_ decision: CacheDecision) -> String {
        switch decision {
        case .serve(let answer): "serve " + words(answer)
        case .serveStaleWhileRevalidating(let answer, let plan): "swr \(words(answer)), \(words(plan))"
        case .serveThenValidate(let answer, let plan): "preview \(words(answer)), \(words(plan))"
        case .validate(let plan): words(plan)
        case .forward(let plan):
            "forward \(plan.reason.rawValue)" + (plan.staleOnError == nil ? "" : " bridged")
                + (plan.fields.isEmpty ? "" : " " + text(plan.fields))
        case .unsatisfiable: "504"
        }
    }

    private static func words(_ answer: CachedResponse) -> String {
        var words = "\(answer.head.status)"
        if answer.variant != 0 { words += " of \(answer.variant)" }
        if answer.isStale { words += " stale" }
        switch answer.content {
        case .none: words += " empty"
        case .whole: break
        case .bytes(let range): words += " \(range.lowerBound)..<\(range.upperBound)"
        }
        return words
    }

    private static func words(_ plan: ForwardPlan) -> String {
        var words = "validate \(plan.reason.rawValue)"
        for field in plan.fields {
            words +=
                " "
                + (field.name == "If-None-Match" ? "INM" : field.name == "If-Modified-Since" ? "IMS" : "CC")
            if field.name != "If-Modified-Since" { words += "=" + field.value }
        }
        return words + (plan.staleOnError == nil ? "" : " bridged")
    }
}
