import MartletConditions
import MartletContent
import MartletTesting
import Synchronization
import Testing

@testable import MartletCLI

@Suite("Parallel transfers with -Z", .timeLimit(.minutes(10)))
struct ParallelTests {
    /// A barrier: requests wait until a given number has arrived, then all continue.
    private final class Gathering: Sendable {
        private struct State {
            var present: [CheckedContinuation<Void, Never>] = []
            var most = 0
        }

        private let count: Int
        private let state = Mutex(State())

        init(of count: Int) { self.count = count }

        /// The maximum number of concurrent requests.
        var most: Int { state.withLock { $0.most } }

        func enter() async {
            await withCheckedContinuation { continuation in
                let released = state.withLock { state -> [CheckedContinuation<Void, Never>] in
                    state.present.append(continuation)
                    state.most = max(state.most, state.present.count)
                    guard state.present.count == count else { return [] }
                    defer { state.present = [] }
                    return state.present
                }
                for continuation in released { continuation.resume() }
            }
        }
    }

    /// Command line words that fetch a number of URLs into separate files.
    private func words(_ count: Int, _ scene: GetScene, _ origin: TestOrigin) -> [String] {
        (0..<count).flatMap { ["-o", scene.file("\($0)"), origin.url("/\($0)")] }
    }

    @Test("All transfers run concurrently, each into its own file, including other option groups")
    func together() async throws {
        let scene = try GetScene()
        let gathering = Gathering(of: 6)
        try await TestOrigin.withOrigin(.plain) { request in
            await gathering.enter()
            return .text(request.path)
        } run: { (origin) async throws in
            let status = try await scene.run(
                ["-Z"] + words(5, scene, origin) + ["--next", "-o", scene.file("5"), origin.url("/5")])
            #expect(status == .success)
            for number in 0..<6 { #expect(scene.text("\(number)") == "/\(number)") }
        }
    }

    @Test("-Z lifts the limit of sixteen connections to one host")
    func wide() async throws {
        let scene = try GetScene()
        let gathering = Gathering(of: 40)
        try await TestOrigin.withOrigin(.plain) { request in
            await gathering.enter()
            return .text(request.path)
        } run: { (origin) async throws in
            #expect(try await scene.run(["-Z"] + words(40, scene, origin)) == .success)
            #expect(scene.text("39") == "/39")
        }
    }

    @Test("At most --parallel-max transfers run concurrently, and all are made")
    func limit() async throws {
        let scene = try GetScene()
        let gathering = Gathering(of: 2)
        try await TestOrigin.withOrigin(.plain) { request in
            await gathering.enter()
            return .text(request.path)
        } run: { (origin) async throws in
            let status = try await scene.run(["-Z", "--parallel-max", "2"] + words(6, scene, origin))
            #expect(status == .success)
            #expect(gathering.most == 2)
            for number in 0..<6 { #expect(scene.text("\(number)") == "/\(number)") }
        }
    }

    @Test("Without -Z transfers run one after the other")
    func inTurn() async throws {
        let scene = try GetScene()
        let gathering = Gathering(of: 1)
        try await TestOrigin.withOrigin(.plain) { request in
            await gathering.enter()
            return .text(request.path)
        } run: { (origin) async throws in
            let words = ["-Z", "--no-parallel", "--parallel-immediate"] + words(3, scene, origin)
            #expect(try await scene.run(words) == .success)
            #expect(gathering.most == 1 && origin.connectionCount == 1)
        }
    }

    @Test("One failure sets the exit status, whatever ends last, and delays no other transfer")
    func failure() async throws {
        let scene = try GetScene()
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { (origin) async throws in
            let status = try await scene.run(
                "-Z", "-f", "-o", scene.file("0"), origin.url("/status/404"), "-o", scene.file("1"),
                origin.url("/redirect/0"), "-o", scene.file("2"), origin.url("/delay/0.02"))
            #expect(status == .rejectedByStatus)
            #expect(scene.text("1") == "arrived\n" && scene.text("2")?.contains("/delay/0.02") == true)
        }
    }

    @Test("--fail-early ends running transfers and exits with the status of the failed one")
    func failEarly() async throws {
        let scene = try GetScene()
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { (origin) async throws in
            let status = try await scene.run(
                "-Z", "--fail-early", "-f", "-o", scene.file("0"), origin.url("/stall/9"), "-o",
                scene.file("1"), origin.url("/status/404"), "-o", scene.file("2"), origin.url("/stall"))
            #expect(status == .rejectedByStatus)
        }
    }

    @Test("The file of -D contains the heads of all transfers in any order, and no earlier content")
    func heads() async throws {
        let scene = try GetScene()
        try scene.write("before", to: "heads")
        try await TestOrigin.withOrigin(.plain) { request in
            .text("x").with { $0.headers.append("X-Path", request.path) }
        } run: { (origin) async throws in
            let status = try await scene.run(["-Z", "-D", scene.file("heads")] + words(9, scene, origin))
            #expect(status == .success)
        }
        let text = try #require(scene.text("heads"))
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
        for number in 0..<9 { #expect(text.contains("X-Path: /\(number)\r\n")) }
    }

    @Test("The file of -D is empty without a head, and one that cannot be created fails all transfers")
    func noHeads() async throws {
        let scene = try GetScene()
        try scene.write("before", to: "heads")
        #expect(try await scene.run("-D", scene.file("heads"), "http://127.0.0.1:1/") == .connectFailed)
        #expect(scene.text("heads")?.isEmpty == true)
        #expect(try await scene.run("-D", scene.file("no/heads"), "http://127.0.0.1:1/") == .writeFailed)
    }

    @Test("The default is 50 transfers, the maximum 300, and there are no progress bars")
    func options() throws {
        #expect(try GetScene.groups([])[0].global.isParallel == false)
        let global = try GetScene.groups(["-Z"])[0].global
        #expect(global.isParallel && global.parallelLimit == 50)
        for value in ["0", "301", "-1", "x"] {
            let error = #expect(throws: UsageError.self) { try GetScene.groups(["--parallel-max", value]) }
            #expect(error?.status == .usage)
        }
        for (words, shown) in [
            (["-Z"], GlobalOptions.Progress.plain), (["-Z", "-#"], .plain), ([], .auto), (["-#"], .bar),
            (["-Z", "--progress", "json"], .json),
        ] { #expect(try GetScene.groups(words + ["--no-silent"])[0].global.shownProgress == shown) }
        #expect(try GetScene.groups(["-Z"])[0].global.shownProgress == .none)
    }
}
