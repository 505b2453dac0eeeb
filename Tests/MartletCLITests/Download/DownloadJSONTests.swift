import MartletConditions
import MartletContent
import MartletURL
import Foundation
import Martlet
import Testing

@testable import MartletCLI

@Suite("JSON output of downloads")
struct DownloadJSONTests {
    private let subject = DownloadJSON.Subject(id: 2, name: "f\n\u{1B}", url: "http://h/f")

    private func object(_ line: String?) throws -> [String: Any] {
        let line = try #require(line)
        #expect(!line.contains("\n") && !line.contains("\u{1B}"))
        return try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }

    @Test("Each event is an object with the number, name and URL of the file")
    func events() throws {
        let started = try object(DownloadJSON.line(.started(resumedByteCount: 7), subject))
        #expect(started["event"] as? String == "started" && started["resumed"] as? Int == 7)
        #expect(started["id"] as? Int == 2 && started["name"] as? String == "f\n\u{1B}")
        #expect(started["url"] as? String == "http://h/f")
        let restarted = try object(DownloadJSON.line(.restarted(.overlapDiffers), subject))
        #expect(restarted["reason"] as? String == "overlapDiffers")
        let error = HTTPError(.timedOut, phase: .preparing, message: "late")
        let retrying = try object(
            DownloadJSON.line(.retrying(error, after: .milliseconds(1500), failures: 3), subject))
        #expect(retrying["code"] as? String == "timedOut" && retrying["message"] as? String == "late")
        #expect(retrying["delay"] as? Double == 1.5 && retrying["failures"] as? Int == 3)
        #expect(try object(DownloadJSON.line(.verifying, subject))["event"] as? String == "verifying")
    }

    @Test("Each result is an object with the file, or with the failure, its exit code and the stored bytes")
    func outcomes() throws {
        let checksum = Checksum.md5("00112233445566778899aabbccddeeff")
        let result = DownloadResult(
            path: "d/f", byteCount: 9, resumedByteCount: 4, receivedByteCount: 5, verified: [checksum],
            url: try HTTPURL("http://h/"))
        let finished = try object(DownloadJSON.line(.finished(result), subject, kept: 0))
        #expect(finished["path"] as? String == "d/f" && finished["bytes"] as? Int == 9)
        #expect(finished["resumed"] as? Int == 4 && finished["received"] as? Int == 5)
        #expect(finished["verified"] as? [String] == ["md5=00112233445566778899aabbccddeeff"])
        var error = HTTPError(.checksumMismatch, phase: .processingResponse, message: "no match")
        error.resumableByteCount = 3
        let failed = try object(DownloadJSON.line(.failed(error), subject, kept: 0))
        #expect(failed["event"] as? String == "failed" && failed["exit"] as? Int == 100)
        #expect(failed["kept"] as? Int == 3)
        let late = try object(DownloadJSON.line(.outOfTime, subject, kept: 8))
        #expect(late["exit"] as? Int == 28 && late["kept"] as? Int == 8)
        let paused = try object(DownloadJSON.line(.stopped, subject, kept: 8))
        #expect(paused["event"] as? String == "paused" && paused["kept"] as? Int == 8)
    }

    @Test("Progress is one object for all downloads, with a nested object for each running one")
    func progress() throws {
        let row = DownloadRow(name: "f", bytes: 5, total: 10, resumed: 1, rate: 2.5, connections: 3)
        var stalled = DownloadRow(name: "g", bytes: 5, rate: 0, stall: .seconds(7))
        stalled.phase = .receiving
        let total = DownloadTotal(fileCount: 4, finishedCount: 1, failedCount: 1, row: row)
        let object = try object(DownloadJSON.progress([(1, row), (3, stalled)], total: total))
        #expect(object["bytes"] as? Int == 5 && object["total"] as? Int == 10)
        #expect(object["left"] as? Double == 2 && object["stalled"] as? Double == 0)
        #expect(object["files"] as? Int == 4 && object["finished"] as? Int == 1)
        let downloads = try #require(object["downloads"] as? [[String: Any]])
        #expect(downloads.map { $0["id"] as? Int } == [1, 3])
        #expect(downloads[0]["connections"] as? Int == 3 && downloads[0]["state"] as? String == "receiving")
        #expect(downloads[0]["resumed"] as? Int == 1)
        #expect(downloads[1]["total"] is NSNull && downloads[1]["left"] is NSNull)
        #expect(downloads[1]["stalled"] as? Double == 7)
    }

    @Test("The last line contains the exit code")
    func ended() throws {
        let total = DownloadTotal(fileCount: 2, finishedCount: 1, failedCount: 1)
        let object = try object(DownloadJSON.ended(total, received: 9, .diskFull))
        #expect(object["ok"] as? Bool == false && object["exit"] as? Int == 105)
        #expect(object["received"] as? Int == 9 && object["failed"] as? Int == 1)
    }
}
