import Glibc
import SystemPackage

/// Asks for a password on the terminal.
enum PasswordPrompt {
    /// The password; `nil` without a terminal to ask on.
    static func password(of user: String) async -> String? {
        await Console.run { () -> String? in
            guard
                let terminal = try? FileDescriptor.open(
                    FilePath("/dev/tty"), .readWrite, options: [.closeOnExec])
            else { return nil }
            defer { try? terminal.close() }
            return try? ask("Enter host password for user '\(user)':", on: terminal)
        }
    }

    private static func ask(_ question: String, on terminal: FileDescriptor) throws -> String {
        var shown = termios()
        guard unsafe tcgetattr(terminal.rawValue, &shown) == 0 else { throw Errno(rawValue: ENOTTY) }
        var hidden = shown
        hidden.c_lflag &= ~tcflag_t(ECHO)
        // Who gives up while being asked shall see what they type again.
        Interrupts.terminalState = (terminal.rawValue, shown)
        defer {
            Interrupts.terminalState = nil
            _ = unsafe tcsetattr(terminal.rawValue, TCSANOW, &shown)
        }
        guard unsafe tcsetattr(terminal.rawValue, TCSANOW, &hidden) == 0 else {
            throw Errno(rawValue: ENOTTY)
        }
        try terminal.writeAll(question.utf8)
        var line: [UInt8] = []
        while line.count < 4096, let byte = try DescriptorReading.read(terminal, atMost: 1).first, byte != 10
        {
            line.append(byte)
        }
        try terminal.writeAll("\n".utf8)
        return String(decoding: line, as: UTF8.self)
    }
}
