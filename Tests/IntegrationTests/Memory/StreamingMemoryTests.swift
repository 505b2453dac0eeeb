import Foundation
import Glibc
import Martlet
import MartletTesting
import Testing

/// The memory of the program is measured, not of this process, which also runs other tests.
@Suite(
    "Memory of a streamed body",
    .enabled(if: MartletProgram.isBuilt, "the program martlet was not built with these tests"),
    .enabled(if: !MartletProgram.isSanitized, "a sanitizer's own memory would be measured"))
struct StreamingMemoryTests {
    private let bound = 16 << 20

    @Test("10 GiB pass through less than 16 MiB of memory")
    func largeBody() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        // Another program generates the body, so that neither process stores it.
        let origin = try await ChildProcess.start(
            MartletProgram.path, ["serve"], in: directory.path, outputPath: directory.appending("origin.log"))
        do {
            try await origin.waitForOutput("/\n")
            let base = origin.output.trimmingCharacters(in: .whitespacesAndNewlines)
            let program = try await ChildProcess.start(
                MartletProgram.path,
                [
                    "get", "\(base)bytes/\(10 << 30)", "-s", "-S", "-o", "/dev/null", "-w",
                    "%{size_download}",
                ],
                in: directory.path, outputPath: directory.appending("program.log"))
            var peak = 0
            let deadline = ContinuousClock.now + .seconds(1800)
            while !program.hasExited, ContinuousClock.now < deadline {
                peak = max(peak, program.identifier.flatMap { ResidentMemory.peak(of: $0) } ?? 0)
                try await Task.sleep(for: .milliseconds(5))
            }
            if !program.hasExited { await program.kill() }
            #expect(await program.waitForExit() == 0, "\(program.output)")
            #expect(program.output == "\(10 << 30)")
            #expect(peak > 0)
            #expect(peak < bound)
        } catch {
            await origin.kill()
            throw error
        }
        await origin.stop()
    }

    @Test("A program with unread output stops the sender, and uses at most 16 MiB")
    func stoppedReader() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        // The output is a pipe that is open for reading, so that writing does not fail, and is never read.
        let pipe = directory.appending("pipe")
        let made = unsafe mkfifo(pipe, 0o600)
        try #require(made == 0)
        let reader = unsafe open(pipe, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        try #require(reader >= 0)
        defer { close(reader) }

        try await TestOrigin.withOrigin { _ in
            .pattern(10 << 30)
        } run: { origin in
            let program = try await ChildProcess.start(
                MartletProgram.path, ["get", origin.url("/"), "-s"], in: directory.path, outputPath: pipe)
            try await origin.waitForRequests(count: 1)
            let sent = try await standstill(of: origin)
            #expect(sent < 32 << 20, "only the sockets buffer bytes")
            #expect(origin.recorder.counts.responses == 0)
            let peak = program.identifier.flatMap { ResidentMemory.peak(of: $0) }
            await program.kill()
            #expect(try #require(peak) < bound)
        }
    }

    /// The number of bytes that the origin had sent when it stopped: it sent nothing for half a second, which is longer
    /// than any scheduling delay.
    private func standstill(of origin: TestOrigin) async throws -> UInt64 {
        let clock = ContinuousClock()
        let deadline = clock.now + .seconds(600)
        var sent = origin.recorder.counts.bytesSent
        var since = clock.now
        while sent == 0 || clock.now - since < .milliseconds(500) {
            try #require(clock.now < deadline, "the origin keeps sending: \(sent) bytes")
            try await Task.sleep(for: .milliseconds(10))
            let now = origin.recorder.counts.bytesSent
            if now != sent { (sent, since) = (now, clock.now) }
        }
        return sent
    }
}
