import Martlet
import MartletDownloads
import MartletTesting
import Synchronization
import Testing

@testable import MartletCLI

@Suite("Running the downloads of a command line", .timeLimit(.minutes(10)))
struct DownloadRunnerTests {
    /// - Parameter showsEvents: Whether the view shows events, so that the runner follows them.
    private func run(
        _ words: [String], _ downloads: any DownloadBackend, showsEvents: Bool = false,
        interruption: @escaping @Sendable () async -> Int32? = noSignal
    ) async throws -> MartletCLI.ExitStatus {
        var reader = CommandLineParser(
            DownloadCommand.options)
        try reader.read((showsEvents ? ["--progress", "plain"] : ["-s"]) + words)
        let group = reader.groups[0]
        let plans = try DownloadPlan.plans(
            for: group, lists: [], caller: try await CredentialPlan.load(group))
        let form = ProgressStyle(group.global, isTerminal: false, usesUnicode: true) { _ in nil }
        let runner = DownloadRunner(
            plans: plans, group: group, starter: downloads,
            screen: DownloadScreen(form: form, fileCount: plans.count),
            limits: (group.download.fileLimit, group.download.fileLimitPerHost))
        return await runner.run(interruption: interruption)
    }

    @Test("The run succeeds when all files succeed, and each file starts once", arguments: [false, true])
    func success(showsEvents: Bool) async throws {
        let downloads = FakeDownloads { fake, _ in fake.finish() }
        let status = try await run(
            (1...20).map { "http://h\($0 % 4)/\($0)" }, downloads, showsEvents: showsEvents)
        #expect(status == .success)
        #expect(Set(downloads.fakes.map(\.plan.number)) == Set(1...20))
    }

    @Test(
        "The exit code is that of the first URL that failed, whatever the order of failures",
        arguments: [false, true])
    func firstFailure(showsEvents: Bool) async throws {
        let downloads = FakeDownloads { fake, all in
            switch fake.plan.number {
            case 1: fake.finish()
            case 2: break
            default:
                fake.fail(.diskFull)
                all.fakes.first { $0.plan.number == 2 }?.fail(.checksumMismatch)
            }
        }
        let status = try await run(
            ["--max-files", "2", "http://a/1", "http://b/2", "http://c/3"], downloads,
            showsEvents: showsEvents)
        #expect(status == .checksum)
    }

    @Test("Downloads that nobody follows run in their tasks: all files, one failure, and a signal")
    func unobserved() async throws {
        let scene = try GetScene()
        let downloads = SessionDownloads(session: HTTPSession(configuration: .ephemeral))
        let options = ["--dir", scene.path, "--max-files", "4", "--max-per-host", "4", "--retry", "0"]
        let (held, continuation) = AsyncStream<Void>.makeStream()
        try await TestOrigin.withOrigin(.plain) { request in
            if request.path == "/bad" { return OriginResponse(404) }
            guard request.path.hasPrefix("/held") else { return OriginResponse.text(request.path) }
            continuation.yield()
            try await Task.sleep(for: .seconds(300))
            return OriginResponse(500)
        } run: { (origin) async throws in
            let names = (1...30).map { "\($0)" }
            #expect(try await run(options + names.map { origin.url("/\($0)") }, downloads) == .success)
            for name in names { #expect(scene.text(name) == "/\(name)") }
            let urls = ["ok", "bad", "also"].map { origin.url("/\($0)") }
            #expect(try await run(options + urls, downloads).code == 22)
            #expect(scene.text("ok") == "/ok" && scene.text("also") == "/also" && scene.text("bad") == nil)
            let status = try await run(options + (1...9).map { origin.url("/held\($0)") }, downloads) {
                for await _ in held { break }
                return 2
            }
            #expect(status.code == 130)
            #expect((1...9).allSatisfy { scene.text("held\($0)") == nil })
        }
    }

    @Test(
        "Each failure has its exit code",
        arguments: [
            (HTTPError.Code.checksumMismatch, 100 as Int32), (.representationChanged, 101),
            (.notResumable, 102),
            (.diskFull, 105), (.alreadyInProgress, 106), (.fileExists, 23), (.fileFailed, 23),
            (.rangeRejected, 33),
            (.unacceptableStatus, 22), (.timedOut, 28), (.truncated, 18), (.connectFailed, 7),
            (.resolutionFailed, 6), (.bodyTooLarge, 63), (.tooManyRedirects, 47),
        ])
    func codes(_ code: HTTPError.Code, _ status: Int32) async throws {
        let downloads = FakeDownloads { fake, _ in fake.fail(code) }
        #expect(try await run(["http://h/"], downloads).code == status)
    }

    @Test("A signal stops running downloads, starts no others, and exits with 130", arguments: [false, true])
    func interruption(showsEvents: Bool) async throws {
        let (begun, continuation) = AsyncStream<Void>.makeStream()
        let downloads = FakeDownloads { fake, _ in
            if fake.plan.number == 1 { fake.finish() }
            if fake.plan.number == 3 { continuation.yield() }
        }
        let status = try await run(
            ["--max-files", "2"] + (1...9).map { "http://h\($0)/" }, downloads, showsEvents: showsEvents
        ) {
            for await _ in begun { break }
            return 2
        }
        #expect(status.code == 130)
        #expect(downloads.fakes.count == 3)
        #expect(downloads.stopCount >= 1)
        // The first two start concurrently, in either order.
        for fake in downloads.fakes where fake.plan.number != 1 {
            if case .paused = fake.status.state {
            } else {
                Issue.record("\(fake.plan.number) was not stopped")
            }
        }
    }

    @Test("The wait for a signal ends with the downloads, so that a later signal ends the program")
    func endOfWait() async throws {
        let downloads = FakeDownloads { fake, _ in fake.finish() }
        let hasEnded = Mutex(false)
        let status = try await run(["http://h/"], downloads) {
            let signal = await noSignal()
            hasEnded.withLock { $0 = true }
            return signal
        }
        #expect(status == .success)
        #expect(hasEnded.withLock { $0 } == true)
    }

    @Test("A wait for a signal that is cancelled before or during the wait returns none")
    func cancelledWait() async {
        for number in 0..<200 {
            let wait = Task { await SignalHandler.next() }
            if number % 2 == 0 { await Task.yield() }
            wait.cancel()
            #expect(await wait.value == nil)
        }
    }

    @Test(
        "--fail-early stops the others at the first failure and returns its exit code", arguments: [false, true])
    func failEarly(showsEvents: Bool) async throws {
        let downloads = FakeDownloads { fake, _ in if fake.plan.number == 2 { fake.fail(.diskFull) } }
        let status = try await run(
            ["--fail-early", "--max-files", "2"] + (1...9).map { "http://h\($0)/" }, downloads,
            showsEvents: showsEvents)
        #expect(status == .diskFull)
        #expect(downloads.fakes.count == 2)
    }

    @Test("-m stops a file when its time limit expires", arguments: [false, true])
    func timeLimit(showsEvents: Bool) async throws {
        let downloads = FakeDownloads { _, _ in }
        #expect(try await run(["-m", "0.01", "http://h/"], downloads, showsEvents: showsEvents) == .timedOut)
    }

    @Test("--retry-max-time ends the retries when the next one would start too late")
    func retryTimeLimit() async throws {
        let downloads = FakeDownloads { fake, _ in
            let error = HTTPError(.connectionLost, phase: .receivingBody, message: "broken")
            fake.status.events.add(.retrying(error, after: .seconds(3600), failures: 1))
        }
        #expect(try await run(["--retry-max-time", "1800", "http://h/"], downloads) == .receiveFailed)
    }
}
