import Martlet
import MartletTesting
import Synchronization
import Testing

@testable import MartletCLI

@Suite("Rate and speed limits of get", .timeLimit(.minutes(10)))
struct RateOptionTests {
    private func options(_ words: String...) throws(UsageError) -> TransferOptions {
        try GetScene.groups(words)[0]
    }

    @Test("--limit-rate limits both directions, with the units of curl, and 0 means no limit")
    func rate() throws {
        for (text, bytes) in [("1000", 1000), ("2k", 2048), ("3M", 3 << 20), ("1G", 1 << 30)] {
            let limit = TransferPlan.requestOptions(try options("--limit-rate", text)).bandwidth
            #expect(limit == BandwidthLimit(upload: .bytesPerSecond(bytes), download: .bytesPerSecond(bytes)))
        }
        #expect(TransferPlan.requestOptions(try options("--limit-rate", "0")).bandwidth == .none)
        #expect(TransferPlan.requestOptions(try options()).bandwidth == .none)
    }

    @Test("-Y alone means 30 s, -y alone 1 byte per second, and zero disables both, as in curl")
    func defaults() throws {
        for (words, limit, time) in [
            (["-Y", "500"], 500, 30), (["-y", "9"], 1, 9), (["-Y", "500", "-y", "9"], 500, 9),
            (["-y", "9", "-Y", "500"], 500, 9), (["-y", "0"], 1, 0), (["-Y", "500", "-y", "0"], 500, 0),
            (["--speed-limit", "7", "--speed-time", "8"], 7, 8),
        ] {
            let options = try GetScene.groups(words)[0]
            #expect(options.speedLimit == limit && options.speedTime == .seconds(time), "\(words)")
        }
    }

    @Test(
        "An invalid value is rejected with the name of the option",
        arguments: [
            ["--limit-rate", "1x"], ["--limit-rate", "-1"], ["-Y", "1k"], ["-Y", "-1"], ["-y", "1.5"],
            ["-y", "99999999999"],
        ])
    func senseless(_ words: [String]) throws {
        let error = try #require(throws: UsageError.self) { try GetScene.groups(words) }
        #expect(error.status == .usage && error.description.hasPrefix("option \(words[0]): "), "\(error)")
    }

    @Test("An event stream, which may be idle, has no minimum speed")
    func events() async throws {
        let scene = try GetScene()
        #expect(try await scene.run("--sse", "-y", "5", "http://127.0.0.1:1/") == .usage)
    }

    @Test(
        "A transfer whose head or body does not arrive exits with 28 and the words of curl", arguments: ["", "/100"])
    func stall(_ path: String) async throws {
        let scene = try GetScene()
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { (origin) async throws in
            let report = try await scene.transfer("-o", scene.file("out"), origin.url("/stall\(path)")) {
                $0.speedLimit = 1_000_000
                $0.speedTime = .milliseconds(200)
            }
            #expect(report.status == .timedOut)
            #expect(
                report.message
                    == "Operation too slow. Less than 1000000 bytes/sec transferred the last 0.2 seconds")
        }
    }

    @Test("The detector does not affect a transfer that is fast enough")
    func fast() async throws {
        let scene = try GetScene()
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { (origin) async throws in
            let status = try await scene.run(
                "-Y", "1", "-y", "600", "-o", scene.file("out"), origin.url("/redirect/2"), "-L")
            #expect(status == .success)
            #expect(scene.text("out") == "arrived\n")
        }
    }

    @Test("Retries treat a slow transfer as a transient failure")
    func retry() async throws {
        let scene = try GetScene()
        let count = Mutex(0)
        try await TestOrigin.withOrigin(.plain) { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return number == 1
                ? OriginResponse.text("late").with { $0.fault = OriginFault(.stall) } : .text("there")
        } run: { (origin) async throws in
            let report = try await scene.transfer(
                "--retry", "5", "--retry-delay", "0.01", "-o", scene.file("out"), origin.url("/")
            ) {
                $0.speedLimit = 1
                $0.speedTime = .milliseconds(500)
            }
            #expect(report.status == .success, "\(report.message)")
            #expect(scene.text("out") == "there")
        }
    }
}
