import Glibc
import MartletCache
import MartletStorage
import MartletWire

/// Stores and reads random responses in a directory: `MartletCacheChild FOLDER LIMIT SEED COUNT URLS MAXIMUM`.
///
/// After each one it writes a byte to its output: `s` stored, `n` not stored, `h` found, `m` not found, `!` a wrong
/// byte.
@main
enum MartletCacheChild {
    static func main() {
        let numbers = CommandLine.arguments.dropFirst(2).compactMap { UInt64($0) }
        guard numbers.count == 5,
            let cache = try? DiskCache(directory: CommandLine.arguments[1], limit: numbers[0])
        else { exit(2) }
        cache.load()
        var state = numbers[1] | 1
        func random(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % max(1, bound)
        }
        for _ in 0..<numbers[2] {
            let url = "https://example.com/\(random(numbers[3]))"
            say(random(2) == 0 ? store(url, random, numbers[4], in: cache) : read(url, in: cache))
        }
        cache.saveIndex()
        exit(0)
    }

    private static func store(
        _ url: String, _ random: (UInt64) -> UInt64, _ maximum: UInt64, in cache: DiskCache
    ) -> Character {
        // Half of the bodies are small.
        let count = Int(random(random(2) == 0 ? 2000 : maximum))
        let seed = random(1 << 31)
        let head = SampleResponse.head(url, seed: seed, count: count)
        guard let writer = cache.begin(head) else { return "n" }
        let body = SampleResponse.body(seed: seed, count: count)
        for start in stride(from: 0, to: count, by: 50_000) {
            writer.append(Array(body[start..<min(count, start + 50_000)]))
        }
        return writer.commit() ? "s" : "n"
    }

    private static func read(_ url: String, in cache: DiskCache) -> Character {
        guard let reader = cache.entry(for: CacheKey(url: url), where: { _ in true }) else { return "m" }
        guard let bytes = try? reader.contents(limit: .max), SampleResponse.matches(reader.head, bytes) else {
            return "!"
        }
        return "h"
    }

    private static func say(_ answer: Character) {
        let bytes = Array(String(answer).utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }
}
