import Foundation

/// A terminal as people see it: tmux, without anybody who looks at it.
struct TmuxScreen {
    /// The socket of its server, which is its own.
    let socket: String

    /// Begins a screen in which a shell command runs.
    func start(columns: Int, rows: Int, _ command: String, in directory: TemporaryDirectory) async throws {
        let run = try await tmux(
            ["-f", "/dev/null", "new-session", "-d", "-x", "\(columns)", "-y", "\(rows)", command],
            in: directory)
        guard run.status == 0 else {
            throw ServerFailure(program: "tmux", reason: "status \(run.status)", log: run.errors)
        }
    }

    /// What it shows, without empty lines, once that is as wanted.
    func wait(until isSeen: ([String]) -> Bool) async throws -> [String] {
        let deadline = ContinuousClock.now + .seconds(300)
        while true {
            let lines = try await tmux(["capture-pane", "-p"]).text.split(separator: "\n").map(String.init)
            if isSeen(lines) { return lines }
            guard ContinuousClock.now < deadline else {
                throw ServerFailure(
                    program: "tmux", reason: "the screen is not as wanted", log: lines.joined(separator: "\n")
                )
            }
            // The one wait by the clock: no event tells what another process has come to.
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Ends it, and what runs in it.
    func end() async {
        _ = try? await tmux(["kill-server"])
    }

    private func tmux(_ words: [String], in directory: TemporaryDirectory? = nil) async throws -> Program.Run
    {
        try await Program.run(
            "tmux", ["-u", "-S", socket] + words, input: [], in: directory,
            environment: ["-u", "NO_COLOR", "-u", "TMUX", "LC_ALL=C.UTF-8", "TERM=xterm"])
    }
}
