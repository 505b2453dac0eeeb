package import MartletCache
import MartletWire

/// A response whose head identifies its body, so that a reader can detect a wrong byte.
package enum SampleResponse {
    /// Makes a head with the seed and the length of the body.
    package static func head(
        _ url: String, seed: UInt64, count: Int, selections: [StoredHead.Selection] = [], time: Int64 = 1000
    ) -> StoredHead {
        StoredHead(
            key: CacheKey(url: url), status: 200, reason: "OK",
            fields: FieldBlock([("X-Seed", "\(seed)"), ("X-Count", "\(count)")]), selections: selections,
            requestTime: WallTime(milliseconds: time), responseTime: WallTime(milliseconds: time + 5))
    }

    /// The body of a seed.
    package static func body(seed: UInt64, count: Int) -> [UInt8] {
        var state = seed | 1
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 8)
        while bytes.count < count {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: state >> shift))
            }
        }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    /// Whether a body matches the seed and length in its head.
    package static func matches(_ head: StoredHead, _ bytes: [UInt8]) -> Bool {
        guard let seed = head.fields.firstValue(of: "x-seed").flatMap({ UInt64($0) }),
            let count = head.fields.firstValue(of: "x-count").flatMap({ Int($0) })
        else { return false }
        return bytes == body(seed: seed, count: count)
    }
}

extension DiskCache {
    /// The newest variant of a key that a test accepts, which counts as used; `nil` if none matches.
    package func entry(for key: CacheKey, where isAcceptable: (StoredHead) -> Bool) -> EntryReader? {
        var found: EntryReader?
        for reader in variants(of: key) where isAcceptable(reader.head) {
            if let other = found, other.head.responseTime > reader.head.responseTime { continue }
            found = reader
        }
        noteUse(of: found)
        return found
    }

    /// Stores a response whose body is complete.
    @discardableResult
    package func store(_ head: StoredHead, body: [UInt8]) -> Bool {
        guard let writer = begin(head, expectedByteCount: UInt64(body.count)) else { return false }
        return writer.append(body) && writer.commit()
    }
}
