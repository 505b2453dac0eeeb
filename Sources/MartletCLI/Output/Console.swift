import Glibc
import Martlet
import MartletTransport
import Synchronization
import SystemPackage

/// Standard output, standard error, and files. Each of the two streams is written in order on its own thread, so that a
/// slow reader of one does not delay the other.
enum Console {
    private static let output = BlockingThreadPool(threadLimit: 1)
    private static let errors = BlockingThreadPool(threadLimit: 1)
    /// The threads for files. A pipe without a reader blocks its thread, so there are as many as transfers of `-Z` by
    /// default.
    private static let files = BlockingThreadPool(threadLimit: 50)
    /// Held during each write to standard error: the thread of standard output writes there as well.
    private static let errorTurn = Mutex(())

    static var outputIsTerminal: Bool { isatty(STDOUT_FILENO) == 1 }
    static var errorIsTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    static func write(_ bytes: [UInt8]) async throws(OutputError) {
        guard !bytes.isEmpty else { return }
        try await attempt(on: output, OutputError.standardOutput) {
            _ = try FileDescriptor.standardOutput.writeAll(bytes)
        }
    }

    static func write(_ text: String) async throws(OutputError) { try await write(Array(text.utf8)) }

    /// Writes a text to standard output. A failure is reported, unless the pipe is closed, and throws the exit status.
    static func print(_ text: String) async throws(ExitStatus) {
        do throws(OutputError) { try await write(text) } catch {
            if !error.isClosedPipe { await report("\(error)") }
            throw .writeFailed
        }
    }

    /// Writes a text to standard error. A missing reader is not an error.
    static func printError(_ text: String) async {
        guard !text.isEmpty else { return }
        await errors.run { try? writeToErrors(text) }
    }

    /// Writes a line with the program's name to standard error.
    static func report(_ message: String) async { await printError("martlet: \(message)\n") }

    /// Queues a text for standard error. Does not wait until it is written; ``flush()`` does.
    static func post(_ text: String) { errors.submit { try? writeToErrors(text) } }

    /// Returns when all output so far is written.
    static func flush() async {
        await output.run {}
        await errors.run {}
    }

    private static func writeToErrors(_ text: String) throws {
        try errorTurn.withLock { _ in _ = try FileDescriptor.standardError.writeAll(text.utf8) }
    }

    /// Writes pieces in order, each to its stream. A missing reader of standard error is not an error.
    static func write(_ pieces: [WriteOut.Piece]) async throws(OutputError) {
        let pieces = pieces.filter { !$0.text.isEmpty }
        // If all pieces are for standard error, a slow reader of standard output must not delay them.
        let workers = pieces.allSatisfy(\.goesToStandardError) ? errors : output
        try await attempt(on: workers, OutputError.standardOutput) {
            for piece in pieces {
                if piece.goesToStandardError {
                    try? writeToErrors(piece.text)
                } else {
                    _ = try FileDescriptor.standardOutput.writeAll(piece.text.utf8)
                }
            }
        }
    }

    static func write(_ bytes: [UInt8], to file: FileDescriptor, named name: String) async throws(OutputError) {
        guard !bytes.isEmpty else { return }
        try await write(to: name) { _ = try file.writeAll(bytes) }
    }

    /// Opens, writes or closes a file on one of the threads for files. Throws the failure, with the file's name.
    static func write<Value: Sendable>(to name: String, _ body: @escaping @Sendable () throws -> Value)
        async throws(OutputError) -> Value
    { try await attempt(on: files, { OutputError(name: name, $0) }, body) }

    /// Writes bytes to a file, which is created if it is missing; `-` is standard output.
    static func write(
        _ bytes: [UInt8], toFile name: String, _ mode: FileDescriptor.OpenOptions, makesDirectories: Bool = false
    ) async throws(OutputError) {
        if name == "-" { return try await write(bytes) }
        try await write(to: name) {
            let file = try FileDescriptor.output(name, mode, makesDirectories: makesDirectories)
            try file.closeAfter { _ = try file.writeAll(bytes) }
        }
    }

    private static func attempt<Value: Sendable>(
        on workers: BlockingThreadPool, _ failure: (any Error) -> OutputError,
        _ body: @escaping @Sendable () throws -> Value
    ) async throws(OutputError) -> Value { try await workers.run { Result(catching: body) }.mapError(failure).get() }

    /// Runs a blocking function on one of the threads for files.
    static func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value { await files.run(body) }

    /// Runs a blocking, throwing function on one of the threads for files.
    static func attempt<Value: Sendable, Failure: Error>(_ body: @escaping @Sendable () throws(Failure) -> Value)
        async throws(Failure) -> Value
    { try await files.run { Result(catching: body) }.get() }
}

struct OutputError: Error, Sendable, CustomStringConvertible {
    /// The name of the file, standard output or the terminal.
    var name: String
    var reason: String
    /// Whether the reader has closed the pipe. This needs no message.
    var isClosedPipe = false
    /// Whether standard output failed. Later transfers would fail, too.
    var isStandardOutput = false

    var description: String { "could not write to \(name): \(reason)" }
}

extension OutputError {
    init(name: String, _ error: any Error, isStandardOutput: Bool = false) {
        let isClosedPipe = (error as? Errno) == .brokenPipe
        self.init(name: name, reason: "\(error)", isClosedPipe: isClosedPipe, isStandardOutput: isStandardOutput)
    }

    static func standardOutput(_ error: any Error) -> OutputError {
        OutputError(name: "standard output", error, isStandardOutput: true)
    }
}

extension JSONRepresentable {
    /// The value as JSON on one line, for programs and for terminals: characters that could control a terminal, which
    /// occur only in strings, are escaped.
    var jsonLine: String {
        let text = json.text()
        guard !text.unicodeScalars.allSatisfy(TerminalText.isHarmless) else { return text }
        return text.unicodeScalars.map { scalar in
            if TerminalText.isHarmless(scalar) { return String(scalar) }
            return String(scalar).utf16.map { "\\u" + String(0x10000 + Int($0), radix: 16).dropFirst() }.joined()
        }.joined()
    }
}

extension JSONValue {
    /// Returns a string of bytes: each byte is the character with the same number (Latin-1).
    static func latin1(_ bytes: [UInt8]) -> JSONValue { .string(ByteText.latin1(bytes[...])) }

    /// Returns a number with the digits of the text; null if the text is not a number.
    static func number(_ text: String) -> JSONValue { JSONNumber(text: text).map { .number($0) } ?? .null }
}
