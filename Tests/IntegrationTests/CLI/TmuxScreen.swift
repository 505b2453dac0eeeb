import Foundation

/// A terminal as users see it: a detached tmux session.
///
/// Its server is a child of the tests and not a daemon: it ends with them in every case.
struct TmuxScreen {
    private let child: ChildProcess
    private let socket: String
    private let directory: TemporaryDirectory

    private static let environment = ["-u", "NO_COLOR", "-u", "TMUX", "LC_ALL=C.UTF-8", "TERM=xterm"]

    /// Runs a test with a screen on which a shell command runs, and ends both.
    static func with(
        columns: Int, rows: Int, _ command: String, in directory: TemporaryDirectory,
        run body: (TmuxScreen) async throws -> Void
    ) async throws {
        let socket = directory.appending("tmux")
        let child = try await ChildProcess.start(
            "env",
            Program.withoutProxies + environment + ["tmux", "-u", "-S", socket, "-f", "/dev/null", "-D"],
            in: directory.path, outputPath: directory.appending("tmux.log"))
        let screen = TmuxScreen(child: child, socket: socket, directory: directory)
        do {
            try await screen.begin(columns, rows, command)
            try await body(screen)
        } catch {
            await child.stop()
            throw error
        }
        await child.stop()
    }

    private func begin(_ columns: Int, _ rows: Int, _ command: String) async throws {
        try await child.wait(for: "its socket") { FileManager.default.fileExists(atPath: socket) }
        let words = ["new-session", "-d", "-x", "\(columns)", "-y", "\(rows)", command]
        let deadline = ContinuousClock.now + .seconds(300)
        while true {
            let run = try await tmux(words)
            if run.status == 0 { return }
            // Between the creation of the socket and its first use it accepts no connection.
            guard ContinuousClock.now < deadline, !child.hasExited else {
                throw ServerFailure(
                    program: "tmux", reason: "status \(run.status)", log: run.errors + child.output)
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Waits until the screen has the expected lines, and returns them without empty ones.
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
            // This is the only wait with a delay: no event reports the progress of another process.
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Sends a command to the server; it does not start one.
    private func tmux(_ words: [String]) async throws -> Program.Run {
        try await Program.run(
            "tmux", ["-u", "-N", "-S", socket] + words, input: [], in: directory,
            environment: TmuxScreen.environment)
    }
}
