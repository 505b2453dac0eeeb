import Glibc
import MartletTransport
import Synchronization
import SystemPackage

/// Standard output and standard error. Writes to each happen one after the other, on a thread of its own, so that a
/// reader who is slow holds nothing but its own output.
enum Console {
    private static let output = BlockingWorkers(threadLimit: 1)
    private static let errors = BlockingWorkers(threadLimit: 1)
    /// Files, which may be pipes that nobody reads: as many may block as `-Z` has transfers by default.
    private static let files = BlockingWorkers(threadLimit: 50)
    /// Held for each write to standard error, which the thread of standard output makes as well.
    private static let errorTurn = Mutex(())

    /// Whether standard output is a terminal.
    static var outputIsTerminal: Bool { isatty(STDOUT_FILENO) == 1 }
    /// Whether standard error is a terminal.
    static var errorIsTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    /// Writes bytes to standard output.
    static func write(_ bytes: [UInt8]) async throws(OutputError) {
        try await write(bytes, to: .standardOutput, named: "standard output")
    }

    /// Writes a text to standard output.
    static func write(_ text: String) async throws(OutputError) { try await write(Array(text.utf8)) }

    /// Prints; that nobody reads any more ends the program without a word.
    static func print(_ text: String) async throws(ExitStatus) {
        do throws(OutputError) {
            try await write(text)
        } catch {
            if !error.isClosedPipe { await complain("martlet: \(error)\n") }
            throw .writeFailed
        }
    }

    /// Writes a text to standard error. That nobody reads it is not an error.
    static func complain(_ text: String) async {
        guard !text.isEmpty else { return }
        await errors.run { try? writeToErrors(text) }
    }

    /// Writes a text to standard error behind what is being written, and does not wait for it: ``flush()`` does.
    static func post(_ text: String) { errors.submit { try? writeToErrors(text) } }

    /// Returns when what was handed over so far is written.
    static func flush() async {
        await output.run {}
        await errors.run {}
    }

    private static func writeToErrors(_ text: String) throws {
        try errorTurn.withLock { _ in _ = try FileDescriptor.standardError.writeAll(text.utf8) }
    }

    /// Writes pieces to both, in their order, none of them torn. That nobody reads standard error is not an error.
    static func write(_ pieces: [WriteOut.Piece]) async throws(OutputError) {
        let pieces = pieces.filter { !$0.text.isEmpty }
        // What has nothing for standard output does not wait for its reader.
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

    /// Writes bytes to a descriptor.
    static func write(_ bytes: [UInt8], to file: FileDescriptor, named name: String) async throws(OutputError)
    {
        guard !bytes.isEmpty else { return }
        guard file == .standardOutput else {
            return try await write(to: name) { _ = try file.writeAll(bytes) }
        }
        try await attempt(on: output, OutputError.standardOutput) { _ = try file.writeAll(bytes) }
    }

    /// Opens, writes or closes a file on one of the threads for files.
    /// - Throws: What failed, with the file's name.
    static func write<Value: Sendable>(
        to name: String, _ body: @escaping @Sendable () throws -> Value
    ) async throws(OutputError) -> Value {
        try await attempt(on: files, { OutputError(name: name, $0) }, body)
    }

    private static func attempt<Value: Sendable>(
        on workers: BlockingWorkers, _ failure: (any Error) -> OutputError,
        _ body: @escaping @Sendable () throws -> Value
    ) async throws(OutputError) -> Value {
        try await workers.run { Result(catching: body) }.mapError(failure).get()
    }

    /// Runs something that blocks on one of the threads for files.
    static func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await files.run(body)
    }

    /// Runs something that blocks, and may fail, on one of the threads for files.
    static func attempt<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value { try await files.run { Result(catching: body) }.get() }
}

/// Output that could not be written.
struct OutputError: Error, Sendable, CustomStringConvertible {
    /// Where to.
    var name: String
    /// Why.
    var reason: String
    /// Whether it was that nobody reads any more, which is no cause for words.
    var isClosedPipe: Bool
    /// Whether it was standard output, which transfers that follow have as well.
    var isStandardOutput = false

    init(name: String, reason: String) {
        self.name = name
        self.reason = reason
        isClosedPipe = false
    }

    init(name: String, _ error: any Error) {
        self.name = name
        reason = "\(error)"
        isClosedPipe = (error as? Errno) == .brokenPipe
    }

    /// Standard output, which failed for this reason.
    static func standardOutput(_ error: any Error) -> OutputError {
        var failure = OutputError(name: "standard output", error)
        failure.isStandardOutput = true
        return failure
    }

    /// Where to, and why not.
    var description: String { "could not write to \(name): \(reason)" }
}
