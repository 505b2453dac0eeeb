import Foundation
import Glibc
import Martlet
import MartletTesting
import Synchronization
import Testing

/// The program is measured, not this process: other tests run beside this one, and their memory is not the form's.
@Suite(
    "Memory of a form that streams",
    .enabled(if: MartletProgram.isBuilt, "the program martlet was not built with these tests"),
    .enabled(if: !MartletProgram.isSanitized, "a sanitizer's own memory would be measured"))
struct FormMemoryTests {
    /// What came of the form.
    private struct Receipt: Sendable {
        var announced: UInt64?
        var received: UInt64
        var ending: [UInt8]
    }

    @Test(
        "A11: a form with a file of 10 GiB takes less than 32 MiB of memory, and has exactly the length it said"
    )
    func largeFile() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let file = directory.appending("sea.mp4")
        // A hole: it takes no room, and is read like any other file.
        try #require(FileManager.default.createFile(atPath: file, contents: nil))
        try #require(unsafe truncate(file, 10 << 30) == 0)
        let receipt = Mutex<Receipt?>(nil)
        try await TestOrigin.withOrigin { request in
            var found = Receipt(
                announced: request.fields["Content-Length"].flatMap { UInt64($0) }, received: 0, ending: [])
            for try await piece in request.body {
                found.received += UInt64(piece.count)
                found.ending = Array((found.ending + piece.suffix(64)).suffix(64))
            }
            receipt.withLock { [found] in $0 = found }
            return .text("ok")
        } run: { origin in
            let program = try await ChildProcess.start(
                MartletProgram.path,
                ["get", origin.url("/"), "-s", "-S", "-F", "title=Sea", "-F", "film=@\(file)"],
                in: directory.path, outputPath: directory.appending("program.log"))
            var peak = 0
            let deadline = ContinuousClock.now + .seconds(300)
            while !program.hasExited, ContinuousClock.now < deadline {
                peak = max(peak, program.identifier.flatMap { ResidentMemory.peak(of: $0) } ?? 0)
                try await Task.sleep(for: .milliseconds(5))
            }
            if !program.hasExited { await program.kill() }
            #expect(await program.waitForExit() == 0, "\(program.output)")
            #expect(program.output == "ok")
            #expect(peak > 0)
            #expect(peak < 32 << 20)
        }
        let found = try #require(receipt.withLock { $0 })
        #expect(found.received > 10 << 30)
        #expect(found.announced == found.received)
        #expect(String(decoding: found.ending.suffix(4), as: UTF8.self) == "--\r\n")
    }
}
