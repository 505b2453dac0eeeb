import MartletFuzzing
import Testing

@Suite("What was fed to the fuzzer, fed again")
struct ReplayTests {
    @Test(
        "Every input that is checked in keeps what its entry promises", arguments: FuzzEntry.all.map(\.name))
    func replay(_ name: String) async throws {
        let entry = try #require(FuzzEntry.all.first { $0.name == name })
        let clock = ContinuousClock()
        var count = 0
        for kind in FuzzFolder.kinds {
            for input in try FuzzFolder.inputs(kind, of: name) {
                // A second is a hang to the fuzzer; here other tests run at the same time, without optimisation, and the
                // machine may stand still: what takes long once is run again.
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

    @Test("Each entry has seeds, a dictionary and a corpus, and no folder is without an entry")
    func foldersAreComplete() throws {
        let names = FuzzEntry.all.map(\.name).sorted()
        #expect(try FuzzFolder.names(in: "Seeds") == names)
        #expect(try FuzzFolder.names(in: "Corpus") == names)
        #expect(try FuzzFolder.names(in: "Dictionaries") == names.map { "\($0).dict" })
        #expect(Set(try FuzzFolder.names(in: "Regressions")).isSubset(of: names))
    }

    @Test("What is checked in stays below 200 KiB")
    func sizeIsBounded() throws {
        var byteCount = 0
        for kind in FuzzFolder.kinds {
            for name in FuzzEntry.all.map(\.name) {
                byteCount += try FuzzFolder.inputs(kind, of: name).reduce(0) { $0 + $1.bytes.count }
            }
        }
        #expect(byteCount < 200 * 1024, "\(byteCount) bytes")
    }
}
