import MartletCache
import MartletWire

/// Messages for the cache rules, built from the lines of an input.
enum CacheFields {
    /// The time at which the messages are requested and received.
    static let start = WallTime(seconds: 1_800_000_000)

    /// Returns a field for each line, at most sixteen; all have the same name.
    static func lines(_ bytes: [UInt8], as name: String) -> FieldBlock {
        var fields = FieldBlock()
        for line in bytes.split(
            separator: ByteClass.lineFeed, maxSplits: 15, omittingEmptySubsequences: false)
        {
            fields.append(name: name.utf8, value: ByteClass.trimmed(line))
        }
        return fields
    }

    /// Returns a GET request with the fields.
    static func request(_ fields: FieldBlock, mode: CacheMode = .standard) -> CacheRequest {
        CacheRequest(
            method: "GET", key: CacheKey(url: "https://example.com/", partition: "p"), fields: fields,
            mode: mode,
            keyedDigest: { "<\($0.utf8.count)>" })
    }
}
