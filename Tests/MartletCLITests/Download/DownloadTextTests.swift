import MartletURL
import Martlet
import SystemPackage
import Testing

@testable import MartletCLI

@Suite("Text output of downloads")
struct DownloadTextTests {
    private let text = DownloadText(usesUnicode: true)

    private func result(_ path: FilePath = "d/f.zip", verified: [Checksum] = []) throws -> DownloadResult {
        DownloadResult(
            path: path, byteCount: 3 << 20, resumedByteCount: 1 << 20, receivedByteCount: 2 << 20,
            verified: verified, url: try HTTPURL("http://h/"))
    }

    @Test("A progress line has all figures, and no remaining time during a stall")
    func progress() {
        var row = DownloadRow(name: "f", bytes: 1 << 20, total: 4 << 20, rate: 1_048_576)
        #expect(text.progress(row) == "f: 25%, 1.0 MiB of 4.0 MiB, 1.0 MiB/s, 3.0 s left")
        row.stall = .seconds(7)
        #expect(text.progress(row) == "f: 25%, 1.0 MiB of 4.0 MiB, stalled 7 s")
        row.total = nil
        row.stall = .zero
        #expect(text.progress(row) == "f: 1.0 MiB, 1.0 MiB/s")
        row.total = 4 << 20
        let total = DownloadTotal(fileCount: 3, finishedCount: 1, failedCount: 1, row: row)
        #expect(text.progress(total).hasPrefix("total, 1 of 3 files, 1 failed: 25%, "))
    }

    @Test("A complete file is reported with its name, received bytes and verification")
    func finished() throws {
        let checksum = Checksum.sha1(String(repeating: "0", count: 40))
        let line = text.outcome(
            .finished(try result(verified: [checksum])), of: subject("f.zip"), after: .seconds(2), kept: 0)
        #expect(line == "d/f.zip: 3.0 MiB in 2.0 s, 1.0 MiB/s; 1.0 MiB were already on disk; sha1 verified")
    }

    @Test("A failure is reported with its exit code and the stored bytes")
    func failed() {
        var error = HTTPError(.diskFull, phase: .receivingBody, message: "no room in d")
        error.resumableByteCount = 1 << 20
        let line = text.outcome(.failed(error), of: subject("f"), after: .seconds(2), kept: 0)
        #expect(line == "martlet: (105) f: GET http://h/f: no room in d; 1.0 MiB are kept for the next run")
        let late = text.outcome(.outOfTime, of: subject("f"), after: .seconds(12), kept: 1024)
        #expect(late == "martlet: (28) f: GET http://h/f: not complete within 12 s; 1.0 KiB are kept for the next run")
        #expect(text.outcome(.stopped, of: subject("f"), after: .zero, kept: 1) == nil)
    }

    @Test(
        "A failure that an option avoids names the option",
        arguments: [
            (HTTPError.Code.fileExists, "--overwrite"), (.fileExists, "--rename"), (.notResumable, "--restart"),
        ])
    func hints(_ code: HTTPError.Code, _ option: String) {
        let error = HTTPError(code, phase: .preparing, message: "m")
        let line = text.outcome(.failed(error), of: subject("f"), after: .zero, kept: 0)
        #expect(line?.contains(option) == true, "\(line ?? "")")
    }

    private func subject(_ name: String) -> DownloadJSON.Subject {
        DownloadJSON.Subject(id: 1, name: name, url: "http://h/\(name)")
    }

    @Test("Names and texts from servers cannot control the terminal or end a line")
    func hostile() throws {
        let name = "a\u{1B}]0;x\u{7}\r\nb"
        let error = HTTPError(.unacceptableStatus, phase: .awaitingHead, message: "said \u{1B}[2J\n")
        let lines = [
            text.progress(DownloadRow(name: name)), text.note(.started(resumedByteCount: 1), name: name),
            text.note(.restarted(.changed), name: name),
            text.note(.retrying(error, after: .seconds(1), failures: 1), name: name),
            text.note(.verifying, name: name),
            text.outcome(.failed(error), of: subject(name), after: .zero, kept: 0),
            text.outcome(.finished(try result(FilePath(name))), of: subject(name), after: .zero, kept: 0),
            text.resumption(left: [name], of: 2, kept: 0, stateDirectory: nil),
            text.resumption(left: [name], of: 1, kept: 0, stateDirectory: name),
        ]
        for line in lines {
            let line = try #require(line)
            #expect(!line.contains("\u{1B}") && !line.contains("\u{7}") && !line.contains("\r"))
        }
    }

    @Test("After a signal the output says how to resume")
    func resumption() {
        #expect(
            text.resumption(left: ["http://h/f"], of: 1, kept: 2048, stateDirectory: nil)
                == "martlet: stopped. 2.0 KiB are kept. To resume, run the same command again.")
        let some = text.resumption(left: ["http://h/f"], of: 2, kept: 0, stateDirectory: nil)
        #expect(some == "martlet: stopped. To resume, run the command again for the rest:\n  http://h/f")
        let many = text.resumption(left: (1...30).map { "http://h/\($0)" }, of: 40, kept: 0, stateDirectory: nil)
        #expect(many.hasSuffix("http://h/20\n  and 10 more"))
        #expect(
            text.resumption(left: ["u"], of: 2, kept: 0, stateDirectory: "s").hasSuffix(
                "martlet download --state s"))
    }

    @Test("Each reason to restart has a text")
    func reasons() {
        let reasons: [DownloadEvent.RestartReason] = [
            .changed, .rangesRejected, .notResumable, .overlapDiffers,
        ]
        #expect(Set(reasons.map(DownloadText.words)).count == 4)
    }
}
