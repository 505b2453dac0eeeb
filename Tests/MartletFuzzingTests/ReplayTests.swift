import MartletFuzzing
import Testing

@Suite("Replay of fuzz inputs")
struct ReplayTests {
    @Test(
        "Each stored input satisfies the assertions of its entry", arguments: FuzzEntry.all.map(\.name))
    func replay(_ name: String) async throws {
        let entry = try #require(FuzzEntry.all.first { $0.name == name })
        let clock = ContinuousClock()
        var count = 0
        for kind in FuzzDirectory.kinds {
            for input in try FuzzDirectory.inputs(kind, of: name) {
                // The fuzzer treats a second as a hang. Here other tests run concurrently without optimization and the
                // machine can stall, so a slow input is run again.
                var fastest = Duration.seconds(1_000_000)
                for _ in 0..<4 where fastest >= .seconds(60) {
                    let start = clock.now
                    do throws(FuzzFinding) {
                        try await entry.run(input.bytes)
                    } catch {
                        Issue.record("Fuzz/\(input.path): \(error)")
                    }
                    fastest = min(fastest, clock.now - start)
                    await Task.yield()
                }
                #expect(fastest < .seconds(60), "Fuzz/\(input.path) takes too long")
                count += 1
            }
        }
        #expect(count > 10, "\(name) has \(count) inputs")
    }

    @Test("Each entry has seeds, a dictionary and a corpus, and each directory has an entry")
    func directoriesAreComplete() throws {
        let names = FuzzEntry.all.map(\.name).sorted()
        #expect(try FuzzDirectory.names(in: "Seeds") == names)
        #expect(try FuzzDirectory.names(in: "Corpus") == names)
        #expect(try FuzzDirectory.names(in: "Dictionaries") == names.map { "\($0).dict" })
        #expect(Set(try FuzzDirectory.names(in: "Regressions")).isSubset(of: names))
    }

    @Test("The stored inputs stay below 220 KiB")
    func sizeIsBounded() throws {
        var byteCount = 0
        for kind in FuzzDirectory.kinds {
            for name in FuzzEntry.all.map(\.name) {
                byteCount += try FuzzDirectory.inputs(kind, of: name).reduce(0) { $0 + $1.bytes.count }
            }
        }
        #expect(byteCount < 220 * 1024, "\(byteCount) bytes")
    }
}
