import MartletURL
import Martlet
import SystemPackage
import Testing

@testable import MartletCLI

@Suite("Combined status of all downloads")
struct DownloadStatusTableTests {
    private func progress(_ bytes: UInt64, of total: UInt64?) -> DownloadProgress {
        var progress = DownloadProgress()
        progress.completedByteCount = bytes
        progress.totalByteCount = total
        progress.receivedByteCount = bytes
        return progress
    }

    @Test("The total size is known once the size of each download is known")
    func whole() {
        var board = DownloadStatusTable(fileCount: 2)
        board.begin(1, name: "a", at: .zero)
        board.note(progress(10, of: 100), of: 1, at: .seconds(1))
        #expect(board.total(at: .seconds(1)).row.total == nil, "the second one has not begun")
        board.begin(2, name: "b", at: .seconds(1))
        #expect(board.total(at: .seconds(1)).row.total == nil, "nothing is known of it")
        board.note(progress(5, of: 50), of: 2, at: .seconds(2))
        let total = board.total(at: .seconds(2))
        #expect(total.row.total == 150 && total.row.bytes == 15)
        #expect(total.row.rate == 7.5, "what both received, since the beginning")
    }

    @Test("A finished download still counts with its size and its received bytes")
    func over() throws {
        var board = DownloadStatusTable(fileCount: 3)
        for number in 1...3 { board.begin(number, name: "\(number)", at: .zero) }
        board.note(progress(100, of: 100), of: 1, at: .seconds(1))
        board.note(progress(40, of: 100), of: 2, at: .seconds(1))
        board.note(progress(10, of: 100), of: 3, at: .seconds(1))
        let result = DownloadResult(
            path: "1", byteCount: 100, receivedByteCount: 100, url: try HTTPURL("http://h/"))
        board.end(1, .finished(result), at: .seconds(2))
        board.end(2, .failed(HTTPError(.timedOut, phase: .preparing, message: "")), at: .seconds(2))
        let total = board.total(at: .seconds(2))
        #expect(total.finishedCount == 1 && total.failedCount == 1 && total.fileCount == 3)
        #expect(total.row.bytes == 150 && total.row.total == 240, "what failed is as long as it came")
        #expect(board.receivedByteCount == 150)
        #expect(board.running == [3])
        board.end(3, .stopped, at: .seconds(3))
        #expect(board.resumableByteCount == 10)
        #expect(board.total(at: .seconds(3)).failedCount == 0 + 1)
    }

    @Test("The total shows the common state of all downloads, else it is receiving")
    func phase() {
        var board = DownloadStatusTable(fileCount: 2)
        board.begin(1, name: "a", at: .zero)
        board.begin(2, name: "b", at: .zero)
        #expect(board.total(at: .zero).row.phase == .starting)
        board.take(.verifying, of: 1, at: .zero)
        #expect(board.total(at: .zero).row.phase == .receiving)
        board.take(.verifying, of: 2, at: .zero)
        #expect(board.total(at: .zero).row.phase == .verifying)
        let error = HTTPError(.timedOut, phase: .preparing, message: "")
        var waits = DownloadStatusTable(fileCount: 2)
        for number in 1...2 {
            waits.begin(number, name: "a", at: .zero)
            waits.take(.retrying(error, after: .seconds(number), failures: 1), of: number, at: .zero)
        }
        #expect(waits.total(at: .zero).row.phase == .waiting(.seconds(1), failures: 1))
    }

    @Test("Rows are in the order of the command line")
    func order() {
        var board = DownloadStatusTable(fileCount: 3)
        for number in [3, 1, 2] { board.begin(number, name: "\(number)", at: .zero) }
        #expect(board.rows(at: .zero).map(\.id) == [1, 2, 3])
    }
}
