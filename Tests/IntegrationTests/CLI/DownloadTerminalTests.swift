import Foundation
import MartletTesting
import Testing

@Suite("martlet download on a terminal")
struct DownloadTerminalTests {
    /// The lines of the frames, without cursor movements and colors.
    private func lines(_ run: Program.Run) -> [String] {
        run.text.replacing(/\u{1B}\[[0-9;?]*[A-Za-z]/, with: "").split {
            $0 == "\r" || $0 == "\n" || $0 == "\r\n"
        }
        .map(String.init)
    }

    private func run(
        _ columns: Int, _ arguments: [String] = [], environment: [String] = ["LC_ALL=C.UTF-8"],
        steps: [PseudoTerminal.Step], path: String = "/held/4096"
    ) async throws -> Program.Run {
        let gate = Gate()
        var result: Program.Run?
        try await DownloadScene.run(gate: gate) { scene in
            result = try await PseudoTerminal.run(
                ["download"] + DownloadScene.patience + arguments + [scene.origin.url(path)],
                columns: columns,
                environment: environment,
                in: scene.directory, steps: steps + [PseudoTerminal.Step(text: "K", file: "go")]
            ) { running in
                let go = scene.directory.appending("go")
                try await running.child.wait(for: "all steps") { FileManager.default.fileExists(atPath: go) }
                gate.open()
            }
        }
        return try #require(result)
    }

    @Test("Bars are redrawn in place within the columns of the terminal", arguments: [20, 40, 80, 200])
    func bars(_ columns: Int) async throws {
        // If one figure fits, it is the stall once there is one, at any later time.
        let mark = columns < 40 ? "stalled" : "50%"
        let run = try await run(columns, ["-o", "a-long-name-of-a-file.bin"], steps: [.init(text: mark)])
        #expect(run.status == 0, "\(run.text)")
        let shown = lines(run)
        #expect(shown.contains { $0.contains(mark) }, "\(shown)")
        // Only the summary may be longer, and the terminal wraps it.
        for line in shown where !line.contains(" in ") { #expect(line.count < columns, "\(line)") }
        #expect(run.text.contains("━") == (columns >= 40))
        #expect(run.text.contains("\u{1B}[32m") == (columns >= 40), "the colour of bars")
        #expect(run.text.contains("\u{1B}[?25l") && run.text.contains("\u{1B}[?25h"))
        #expect(shown.last?.hasPrefix("a-long-name-of-a-file.bin: 4.0 KiB in ") == true)
    }

    @Test("NO_COLOR disables colors, and a locale without UTF-8 uses only ASCII")
    func plainMarks() async throws {
        let uncoloured = try await run(
            80, environment: ["LC_ALL=C.UTF-8", "NO_COLOR=1"], steps: [.init(text: "50%")])
        #expect(uncoloured.status == 0)
        #expect(uncoloured.text.contains("━") && !uncoloured.text.contains(/\u{1B}\[[0-9;]*m/))
        let ascii = try await run(
            80, ["-o", "schön.bin"], environment: ["LC_ALL=C"], steps: [.init(text: "50%")])
        #expect(ascii.status == 0)
        #expect(ascii.output.allSatisfy { $0 < 0x80 })
        #expect(ascii.text.contains("sch?n.bin") && ascii.text.contains("#"))
    }

    @Test("A terminal that cannot move its cursor gets plain lines")
    func dumb() async throws {
        try await DownloadScene.run { scene in
            let run = try await PseudoTerminal.run(
                ["download", "-o", "f", scene.origin.url("/bytes/2048")], columns: 80,
                environment: ["LC_ALL=C.UTF-8", "TERM=dumb"], in: scene.directory)
            #expect(run.status == 0, "\(run.text)")
            #expect(!run.text.contains("\u{1B}"))
            #expect(run.text.hasPrefix("f: 2.0 KiB in "), "\(run.text)")
            #expect(scene.bytes("f") == DownloadScene.pattern(2048))
        }
    }

    @Test("A terminal that gets narrower has narrower bars from the next frame on")
    func resize() async throws {
        let run = try await run(
            100, ["-o", "file.bin"],
            steps: [.init(text: "50%", columns: 40), .init(text: "stalled"), .init(text: "stalled")])
        #expect(run.status == 0)
        let shown = lines(run)
        #expect(shown.contains { $0.count == 99 } && shown.contains { $0.count == 39 }, "\(shown)")
    }

    @Test("Several files have a line each, and a total line last")
    func total() async throws {
        let gate = Gate()
        try await DownloadScene.run(gate: gate) { scene in
            let urls = [4096, 8192].map { scene.origin.url("/held/\($0)") }
            // Each has one connection: another one would race for the held bytes, and both would count them.
            let run = try await PseudoTerminal.run(
                ["download", "--segments", "1"] + DownloadScene.patience + urls, columns: 80,
                in: scene.directory,
                // With half of all bytes both have a line.
                steps: [.init(text: "0 of 2 files[^\r]*50%", file: "go")]
            ) { running in
                let go = scene.directory.appending("go")
                try await running.child.wait(for: "all steps") { FileManager.default.fileExists(atPath: go) }
                gate.open()
            }
            #expect(run.status == 0, "\(run.text)")
            // A frame is the text that is written without wrapping.
            let frames = run.text.split(separator: "\u{1B}[?7l").dropFirst().map {
                $0.prefix(upTo: $0.firstRange(of: "\u{1B}[?7h")?.lowerBound ?? $0.endIndex)
            }
            let rows = frames.map { $0.split(separator: "\r\n") }
            #expect(rows.contains { $0.count == 3 })
            for row in rows { #expect(row.last?.contains(" of 2 files") == true, "\(row)") }
            #expect(
                lines(run).last?.hasPrefix("total: 2 of 2 files, 12.0 KiB in ") == true,
                "\(lines(run).suffix(4))")
        }
    }

    @Test("A file that is complete before the first frame has no bar")
    func fast() async throws {
        try await DownloadScene.run { scene in
            let run = try await PseudoTerminal.run(
                ["download", scene.origin.url("/bytes/10")], columns: 80, in: scene.directory)
            #expect(run.status == 0)
            // A slower machine draws a bar, which is erased.
            #expect(!run.text.contains("\u{1B}[?25l") || run.text.contains("\u{1B}[?25h"))
            #expect(lines(run).last?.hasPrefix("10: 10 B in ") == true, "\(run.text)")
        }
    }

    @Test("Ctrl-C shows the cursor again, prints how to resume, and exits with 130")
    func interrupt() async throws {
        try await DownloadScene.run { scene in
            let run = try await PseudoTerminal.run(
                ["download"] + DownloadScene.patience + ["-o", "f", scene.origin.url("/held/8192")],
                columns: 60, in: scene.directory,
                steps: [.init(text: "50%", typed: "\u{3}")])
            #expect(run.status == 130, "\(run.text)")
            #expect(run.text.hasSuffix("\u{1B}[?25h"))
            #expect(run.text.contains("martlet: stopped. 4.0 KiB are kept."), "\(run.text)")
        }
    }

    @Test(
        "A terminal shows the bars correctly: no line wraps, and notes stay above",
        arguments: [24, 60])
    func picture(_ columns: Int) async throws {
        let gate = Gate()
        try await DownloadScene.run(gate: gate) { scene in
            let names = ["燕の大きなファイルの名前.bin", "e\u{301}te\u{301}-\u{301}\u{302}-file.bin"]
            let list = names.enumerated().map {
                "\(scene.origin.url("/held/\(4096 << $0.offset)"))\n out=\($0.element)\n"
            }
            try scene.directory.write(list.joined() + scene.origin.url("/bytes/7") + "\n", to: "list")
            let command =
                "'\(Program.path)' download --stall-timeout 600 --max-per-host 3 -i list; echo status $?; exec sleep 3600"
            try await TmuxScreen.with(columns: columns, rows: 12, command, in: scene.directory) { screen in
                let mark = columns < 40 ? "stalled" : "50%"
                let drawn = try await screen.wait { lines in
                    guard lines.count >= 4, let last = lines.last else { return false }
                    return (last.contains("1/3") || last.contains("1 of 3 files"))
                        && lines.suffix(3).dropLast().allSatisfy { $0.contains(mark) }
                }
                #expect(drawn.first?.hasPrefix("7: 7 B in ") == true)
                // The final line has any length; each of the others fits one row.
                let stays = drawn.dropLast(3).joined()
                #expect(!stays.contains(mark) && !stays.contains("files"), "\(drawn)")
                gate.open()
                let ended = try await screen.wait { $0.contains("status 0") }
                #expect(!ended.contains { $0.contains("━") || $0.contains("50%") }, "\(ended)")
                #expect(ended.contains { $0.hasPrefix("total: 3 of 3 files") })
            }
        }
    }
}
