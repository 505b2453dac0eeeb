import Testing

@testable import MartletCLI

@Suite("Progress bars of downloads")
struct DownloadBarsTests {
    private func bars(_ columns: Int, rows: Int = 24, unicode: Bool = true, color: Bool = false)
        -> DownloadBars
    {
        DownloadBars(
            size: TerminalSize(columns: columns, rows: rows), usesUnicode: unicode, usesColor: color)
    }

    private let half = DownloadRow(
        name: "model-q4_k_m.gguf", bytes: 50 << 20, total: 100 << 20, rate: 10_485_760, connections: 4)
    private var total: DownloadTotal {
        var row = half
        row.name = ""
        return DownloadTotal(fileCount: 5, finishedCount: 2, failedCount: 0, row: row)
    }

    @Test("200 columns show name, bar, percentage, received and total bytes, rate and remaining time")
    func wide() {
        let lines = bars(200).lines([half], total: total)
        #expect(lines.count == 2)
        #expect(lines[0].hasPrefix("model-q4_k_m.gguf  ━"))
        #expect(lines[0].contains("─   50%     50.0 MiB of 100.0 MiB  10.0 MiB/s   5.0 s left"))
        #expect(lines[1].hasPrefix("2 of 5 files       ━"))
        #expect(lines.allSatisfy { ColumnText.width($0) == 199 })
    }

    @Test("80 columns leave out the total size and shorten the name in the middle")
    func usual() {
        let lines = bars(80).lines([half], total: total)
        #expect(
            lines[0] == "model-q…m.gguf  ━━━━━━━───────   50%    50.0 MiB  10.0 MiB/s   5.0 s left      ")
        #expect(
            lines[1] == "2 of 5 files    ━━━━━━━───────   50%    50.0 MiB  10.0 MiB/s   5.0 s left      ")
    }

    @Test("40 columns show name, bar, percentage and rate")
    func narrow() {
        let lines = bars(40).lines([half], total: total)
        #expect(lines[0] == "mod…guf  ━━━━─────   50%  10.0 MiB/s   ")
        #expect(lines[1].hasPrefix("2/5      ━━━━─────   50%"))
    }

    @Test("20 columns show the name and the most important figure")
    func tiny() {
        #expect(bars(20).lines([half], total: total) == ["model-q…m.gguf  50%", "2 of 5 files    50%"])
        var stalled = half
        stalled.stall = .seconds(7)
        #expect(bars(20).lines([stalled], total: nil) == ["mod…uf  stalled 7 s"])
        var verifying = half
        verifying.phase = .verifying
        #expect(bars(20).lines([verifying], total: nil) == ["mode…guf  verifying"])
    }

    @Test(
        "No line is as wide as the terminal, whatever it shows",
        arguments: Array(1...60) + [79, 80, 81, 100, 120, 200, 399])
    func bound(_ columns: Int) {
        let names = [
            "", "a", "model-q4_k_m.gguf", String(repeating: "x", count: 255), "日本語のファイル名前.tar.gz",
            "e\u{301}\u{302}\u{303}\u{304}", "a\u{1B}[2J\r\n\u{202E}b", "🐦🐦🐦🐦🐦🐦🐦🐦🐦🐦🐦🐦", "\u{301}mark first",
        ]
        let phases: [DownloadRow.Phase] = [
            .starting, .receiving, .verifying, .waiting(.seconds(86_400), failures: 1),
            .waiting(.seconds(30), failures: 4_000_000),
        ]
        for name in names {
            for phase in phases {
                for whole in [nil, 0, UInt64.max] as [UInt64?] {
                    for stall in [Duration.zero, .seconds(900_000)] {
                        let row = DownloadRow(
                            name: name, phase: phase, bytes: (whole ?? 7) / 2, total: whole,
                            rate: whole == nil ? 0 : 1e18, stall: stall)
                        for unicode in [true, false] {
                            let total = DownloadTotal(
                                fileCount: 100_000, finishedCount: 99_999, failedCount: 1, row: row)
                            let lines = bars(columns, unicode: unicode).lines([row, half], total: total)
                            for line in lines {
                                #expect(ColumnText.width(line) <= max(1, columns - 1), "\(line)")
                                #expect(!line.contains { $0.isNewline || $0 == "\u{1B}" })
                            }
                        }
                    }
                }
            }
        }
    }

    @Test("All lines have the same columns, whatever they contain")
    func columns() {
        var stalled = half
        stalled.stall = .seconds(75)
        var unknown = half
        unknown.total = nil
        var waiting = half
        waiting.phase = .waiting(.seconds(3), failures: 2)
        let lines = bars(100).lines([half, stalled, unknown, waiting], total: total)
        #expect(Set(lines.map { ColumnText.width($0) }) == [99])
        #expect(lines[1].contains("stalled 1 min 15 s"))
        #expect(lines[2].contains("50.0 MiB"))
        #expect(!lines[2].contains("━") && !lines[2].contains("%"))
        #expect(lines[3].contains("again in 3 s (failure 2)"))
    }

    @Test("A stall replaces rate and remaining time")
    func stall() {
        var row = half
        row.stall = .seconds(7)
        let line = bars(120).lines([row], total: nil)[0]
        #expect(line.contains("stalled 7 s"))
        #expect(!line.contains("left") && !line.contains("/s"))
        row.stall = .seconds(2)
        #expect(bars(120).lines([row], total: nil)[0].contains("left"))
        row.rate = 0
        #expect(!bars(120).lines([row], total: nil)[0].contains("left"))
    }

    @Test("Only a complete download shows 100% and a full bar")
    func complete() {
        var row = half
        row.bytes = (100 << 20) - 1
        let line = bars(80).lines([row], total: nil)[0]
        #expect(line.contains(" 99%") && line.contains("─"))
        row.bytes += 1
        let full = bars(80).lines([row], total: nil)[0]
        #expect(full.contains("100%") && !full.contains("─"))
        let empty = DownloadRow(name: "empty", phase: .verifying, total: 0)
        #expect(bars(80).lines([empty], total: nil)[0].contains("100%"))
    }

    @Test("Without UTF-8 only ASCII is printed")
    func ascii() {
        var row = half
        row.name = "燕-model-of-a-very-long-name.gguf"
        for columns in [20, 40, 80, 200] {
            for line in bars(columns, unicode: false).lines([row], total: total) {
                #expect(line.utf8.allSatisfy { $0 < 0x80 }, "\(line)")
            }
        }
        #expect(bars(80, unicode: false).lines([row], total: nil)[0].contains("#"))
        #expect(bars(80, unicode: false).lines([row], total: nil)[0].contains("..."))
    }

    @Test("Colors change nothing but the color")
    func color() {
        var waiting = half
        waiting.phase = .waiting(.seconds(3), failures: 1)
        for columns in [20, 40, 80, 200] {
            let plain = bars(columns).lines([half, waiting], total: total)
            let colored = bars(columns, color: true).lines([half, waiting], total: total)
            let stripped = colored.map { $0.replacing(/\u{1B}\[[0-9;]*m/, with: "") }
            #expect(stripped == plain)
            #expect(colored != plain)
            #expect(colored.allSatisfy { !$0.contains("\u{1B}") || $0.contains("\u{1B}[0m") })
        }
    }

    @Test("More downloads than terminal lines show the first ones and the number of the others")
    func height() {
        let rows = Array(repeating: half, count: 30)
        let lines = bars(80, rows: 10).lines(rows, total: total)
        #expect(lines.count == 9)
        #expect(lines[7].hasPrefix("and 23 more"))
        #expect(lines[8].hasPrefix("2 of 5 files"))
        #expect(bars(80, rows: 1).lines(rows, total: total).count <= 2)
        #expect(bars(80, rows: 40).lines(rows, total: total).count == 31)
    }

    @Test("The number of failures is shown next to the number of files")
    func failures() {
        var total = total
        total.failedCount = 1
        #expect(bars(200).lines([half], total: total)[1].hasPrefix("2 of 5 files, 1 failed"))
        #expect(bars(200).lines([], total: total).count == 1)
    }
}
