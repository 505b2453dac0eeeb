import MartletCacheChild
import MartletWire

@testable import MartletCache

extension ResponseStore {
    /// Returns a head for the body of a seed.
    static func head(_ url: String, seed: UInt64, count: Int, language: String? = nil, time: Int64 = 1000)
        -> StoredHead
    {
        let selections = language.map { [StoredHead.Selection(name: "accept-language", value: $0)] } ?? []
        return SampleResponse.head(url, seed: seed, count: count, selections: selections, time: time)
    }

    /// Stores the body of a seed under a URL.
    @discardableResult
    func put(
        _ url: String, seed: UInt64 = 1, count: Int = 100, language: String? = nil, time: Int64 = 1000,
        epoch: InvalidationLog.Epoch? = nil
    ) -> StoredResponse? {
        let head = Self.head(url, seed: seed, count: count, language: language, time: time)
        let writer = begin(head, expectedByteCount: nil, epoch: epoch ?? self.epoch)
        writer?.append(SampleResponse.body(seed: seed, count: count))
        return writer?.commit(trailers: nil)
    }

    /// Finds a URL as a client does: first in memory, then in both tiers. A hit is promoted to memory.
    func find(_ url: String) -> StoredResponse? {
        let key = CacheKey(url: url)
        let found = inMemory(key).first ?? all(key).first
        noteUse(of: found)
        if let found { promote(found) }
        return found
    }

    /// Returns the seed of the body that is found; 0 for a miss and `nil` for a wrong byte.
    func seed(of url: String) -> UInt64? { find(url).map { $0.seed } ?? 0 }

    /// Returns whether memory has an entry for a URL.
    func remembers(_ url: String) -> Bool { !inMemory(CacheKey(url: url)).isEmpty }
}

extension TierStatistics {
    /// The number of requests that a tier served.
    var hits: Int { memory.hits + (disk?.hits ?? 0) }

    /// The number of requests that no tier served.
    var misses: Int { disk?.misses ?? memory.misses }
}

extension StoredResponse {
    /// Whether the response was found in memory.
    var isInMemory: Bool { entry != nil }

    /// Returns the complete body.
    func bytes() throws -> [UInt8] {
        switch body {
        case .bytes(let bytes): bytes
        case .file(let reader): try reader.contents(limit: .max)
        }
    }

    /// The seed of a complete body; `nil` for a wrong byte.
    var seed: UInt64? {
        guard let bytes = try? bytes(), SampleResponse.matches(head, bytes) else { return nil }
        return head.fields.firstValue(of: "x-seed").flatMap { UInt64($0) }
    }
}

extension ResponseWriter {
    /// Returns all bytes that can be read back now, in pieces.
    func readable(limit: Int = 5000) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while UInt64(bytes.count) < readableByteCount {
            let piece = try read(at: UInt64(bytes.count), limit: limit)
            if piece.isEmpty { break }
            bytes += piece
        }
        return bytes
    }
}
