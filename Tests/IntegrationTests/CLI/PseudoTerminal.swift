import Foundation

/// Runs the program on a pseudo terminal and records its output.
enum PseudoTerminal {
    /// A step during the run: wait for a text, then send bytes or change the number of columns.
    struct Step {
        /// The awaited text, as a regular expression of Python.
        let text: String
        /// The bytes to type after that.
        var typed = ""
        /// The number of columns after that; 0 keeps the number.
        var columns = 0
        /// The file to create after that; empty for no file.
        var file = ""
    }

    /// Runs the program; a Python process holds the other side of the terminal.
    static func run(
        _ arguments: [String], columns: Int, rows: Int = 24, environment: [String] = ["LC_ALL=C.UTF-8"],
        in directory: TemporaryDirectory, steps: [Step] = [],
        while body: (RunningProgram) async throws -> Void = { _ in }
    ) async throws -> Program.Run {
        let list = steps.map { "\($0.text)\u{1F}\($0.typed)\u{1F}\($0.columns)\u{1F}\($0.file)" }
        return try await Program.run(
            "python3",
            ["-c", script, "\(columns)", "\(rows)", list.joined(separator: "\u{1E}"), Program.path]
                + arguments,
            input: [], in: directory, environment: ["-u", "NO_COLOR", "TERM=xterm"] + environment, while: body
        )
    }

    private static let script = """
        import fcntl, os, pty, re, struct, sys, termios
        columns, rows, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[4:]
        steps = [s.split('\\x1f') for s in sys.argv[3].split('\\x1e') if s]
        def resize(fd, columns):
            fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
        pid, fd = pty.fork()
        if pid == 0:
            resize(0, columns)
            os.execv(program[0], program)
        seen = b''
        while True:
            try:
                piece = os.read(fd, 65536)
            except OSError:
                break
            if not piece:
                break
            os.write(1, piece)
            seen += piece
            if steps and re.search(steps[0][0].encode(), seen):
                text, typed, width, name = steps.pop(0)
                seen = b''
                if width != '0':
                    resize(fd, int(width))
                if typed:
                    os.write(fd, typed.encode())
                if name:
                    open(name, 'w').close()
        status = os.waitpid(pid, 0)[1]
        sys.exit(os.waitstatus_to_exitcode(status))
        """
}
