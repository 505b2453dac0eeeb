import MartletCache
import MartletStorage
import MartletWire

/// Measures the store of the response cache in a new directory: `cache-store DIRECTORY [ENTRIES]`.
///
/// It prints one line of JSON per scenario. At the end it removes all entries, but not the directory's own files.
@main
struct CacheStore {
    static let now = WallTime(seconds: 1_800_000_010)

    static func main() throws {
        guard CommandLine.arguments.count > 1 else {
            print("usage: cache-store DIRECTORY [ENTRIES]")
            return
        }
        let directory = CommandLine.arguments[1]
        let entryCount = CommandLine.arguments.count > 2 ? Int(CommandLine.arguments[2]) ?? 1 : 100_000
        measureMemory()
        for (name, byteCount, count) in [("1 KB", 1_000, 20_000), ("100 KB", 100_000, 2_000)] {
            try measureDisk(directory, name, byteCount: byteCount, count: count)
        }
        try measureLarge(directory)
        try measureOpening(directory, entryCount: entryCount)
        for skew in [0.7, 0.9, 1.1] { measureOrders(skew: skew) }
        try DiskCache(directory: directory, limit: 1 << 40).removeAll()
    }

    // MARK: Scenarios

    /// Measures a hit in memory: lookup, decision and response.
    static func measureMemory() {
        let memory = MemoryCache(limit: 64 << 20)
        for number in 0..<1_000 {
            memory.insert(MemoryEntry(head: head(number, 1_000), body: body(1_000)), isOnDisk: true)
        }
        let count = 500_000
        var served = 0
        let seconds = timed {
            for number in 0..<count {
                let request = request(number % 1_000)
                let entries = memory.variants(of: request.key)
                let decision = CacheDecision(request, variants: entries.map(\.variant), now: now)
                guard case .serve(let answer) = decision else { continue }
                memory.noteUse(of: entries[answer.variant])
                served += entries[answer.variant].body.count / 1_000
            }
        }
        line("memory hit, 1 KB, decided and answered", count: served, seconds)
        let found = timed {
            for number in 0..<count {
                served += memory.find(key(number % 1_000)) == nil ? 0 : 1
            }
        }
        line("memory hit, 1 KB, found alone", count: served - count, found)
    }

    /// Measures storing, and hits that read the whole body.
    static func measureDisk(_ directory: String, _ name: String, byteCount: Int, count: Int) throws {
        let disk = try DiskCache(directory: directory, limit: 1 << 34)
        let body = body(byteCount)
        var stored = 0
        let storing = timed {
            for number in 0..<1_000 where disk.store(head(number, byteCount), body: body) { stored += 1 }
        }
        line("store, \(name)", count: stored, storing)
        var served = 0
        let hits = timed {
            for number in 0..<count {
                let request = request(number % 1_000)
                let readers = disk.variants(of: request.key)
                let variants = readers.map { StoredVariant(head: $0.head, bodyLength: $0.byteCount) }
                guard case .serve(let answer) = CacheDecision(request, variants: variants, now: now),
                    let bytes = try? readers[answer.variant].contents(limit: 1 << 20)
                else { continue }
                disk.noteUse(of: readers[answer.variant])
                served += bytes.count / byteCount
            }
        }
        line("disk hit, \(name)", count: served, hits)
        disk.removeAll()
    }

    /// Measures a body of 100 MB that is written in pieces of 64 KiB and then read.
    static func measureLarge(_ directory: String) throws {
        let disk = try DiskCache(directory: directory, limit: 1 << 34)
        let piece = body(65_536)
        let pieceCount = 1_526
        let byteCount = pieceCount * piece.count
        var isStored = false
        let storing = timed {
            guard let writer = disk.begin(head(0, byteCount), expectedByteCount: UInt64(byteCount)) else {
                return
            }
            for _ in 0..<pieceCount { writer.append(piece) }
            isStored = writer.commit()
        }
        line("store, 100 MB", count: isStored ? 1 : 0, storing, byteCount: byteCount)
        var readCount = 0
        let reading = try timed {
            guard let reader = disk.variants(of: key(0)).first else { return }
            while true {
                let bytes = try reader.read(at: UInt64(readCount), limit: 1 << 20)
                if bytes.isEmpty { break }
                readCount += bytes.count
            }
        }
        line("disk hit, 100 MB", count: readCount / byteCount, reading, byteCount: byteCount)
        disk.removeAll()
    }

    /// Measures opening a directory of many entries, with and without an index.
    static func measureOpening(_ directory: String, entryCount: Int) throws {
        let filler = try DiskCache(directory: directory, limit: 1 << 34)
        let body = body(1_000)
        var stored = 0
        let storing = timed {
            for number in 0..<entryCount where filler.store(head(number, 1_000), body: body) { stored += 1 }
        }
        line("store, 1 KB, into a directory that grows to \(entryCount)", count: stored, storing)
        for name in ["without an index", "with an index"] {
            var found = 0
            var opened: DiskCache?
            let hit = try timed {
                let disk = try DiskCache(directory: directory, limit: 1 << 34)
                found = try disk.variants(of: key(entryCount / 2)).first?.contents(limit: 1 << 20).count ?? 0
                opened = disk
            }
            line(
                "opening \(entryCount) entries \(name), to the end of the first hit", count: found / 1_000,
                hit)
            let loading = timed { opened?.load() }
            line("index complete, \(name)", count: opened?.statistics.entryCount ?? 0, loading)
            let saving = timed { opened?.saveIndex() }
            line("index saved", count: opened?.statistics.entryCount ?? 0, saving)
        }
    }

    /// Measures the hit ratio of memory for both eviction orders on the same trace: 1,000,000 Zipf-distributed requests
    /// for 100,000 URLs. A second trace includes a pass over all URLs, as a crawler makes it.
    static func measureOrders(skew: Double) {
        for hasScan in [false, true] {
            var trace = ZipfTrace(count: 100_000, skew: skew)
            var requests: [Int] = []
            for number in 0..<1_000_000 {
                if hasScan, number == 500_000 { requests += 0..<100_000 }
                requests.append(trace.next())
            }
            for percent in [1, 10] {
                var ratios: [Double] = []
                for order in [EvictionOrder.leastRecentlyUsed, .sieve] {
                    let cost = MemoryEntry(head: head(10_000, 0), body: []).cost
                    let memory = MemoryCache(limit: cost * 1_000 * percent, order: order)
                    for number in requests where memory.find(key(number)) == nil {
                        memory.insert(MemoryEntry(head: head(number, 0), body: []), isOnDisk: true)
                    }
                    ratios.append(Double(memory.statistics.hits) / Double(requests.count))
                }
                print(
                    "{\"scenario\":\"hit ratio, Zipf \(skew)\(hasScan ? " with a scan" : ""), "
                        + "room for \(percent) %\",\"lru\":\(ratios[0]),\"sieve\":\(ratios[1])}")
            }
        }
    }

    // MARK: Parts

    static func key(_ number: Int) -> CacheKey { CacheKey(url: "https://example.com/items/\(number)") }

    static func request(_ number: Int) -> CacheRequest {
        let fields = FieldBlock([("Accept", "*/*"), ("User-Agent", "benchmark"), ("Accept-Encoding", "gzip")])
        return CacheRequest(method: "GET", key: key(number), fields: fields)
    }

    static func head(_ number: Int, _ byteCount: Int) -> StoredHead {
        StoredHead(
            key: key(number), status: 200, reason: "OK",
            fields: FieldBlock([
                ("Date", "Fri, 15 Jan 2027 08:00:00 GMT"), ("Content-Type", "application/json"),
                ("Content-Length", "\(byteCount)"), ("ETag", "\"5f3a-18c2b7d9e40\""),
                ("Cache-Control", "public, max-age=3600"), ("Server", "nginx/1.22.1"),
            ]),
            requestTime: WallTime(seconds: 1_800_000_000), responseTime: WallTime(seconds: 1_800_000_000))
    }

    static func body(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) } }

    static func timed<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) -> Double {
        let start = ContinuousClock.now
        try body()
        return (ContinuousClock.now - start) / .seconds(1)
    }

    static func line(_ scenario: String, count: Int, _ seconds: Double, byteCount: Int = 0) {
        var text = "{\"scenario\":\"\(scenario)\",\"count\":\(count),\"seconds\":\(seconds)"
        if count > 0 { text += ",\"microsecondsEach\":\(seconds / Double(count) * 1e6)" }
        if byteCount > 0 { text += ",\"megabytesPerSecond\":\(Double(byteCount) / seconds / 1e6)" }
        print(text + "}")
    }
}

extension MemoryCache {
    /// Returns the entry of a key, and counts it as used.
    fileprivate func find(_ key: CacheKey) -> MemoryEntry? {
        let found = variants(of: key).first
        noteUse(of: found)
        return found
    }
}

extension DiskCache {
    /// Stores a response with a complete body.
    fileprivate func store(_ head: StoredHead, body: [UInt8]) -> Bool {
        guard let writer = begin(head, expectedByteCount: UInt64(body.count)) else { return false }
        return writer.append(body) && writer.commit()
    }
}
