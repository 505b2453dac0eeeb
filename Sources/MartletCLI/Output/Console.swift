import Glibc
import MartletTransport
import SystemPackage

/// Standard output and standard error. Writes happen one after the other, on a thread of their own, so that a
/// reader who is slow holds nothing but its own output.
enum Console {
    private static let output = BlockingWorkers(threadLimit: 1)

    /// Whether standard output is a terminal.
    static var outputIsTerminal: Bool { isatty(STDOUT_FILENO) == 1 }
    /// Whether standard error is a terminal.
    static var errorIsTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    /// Writes bytes to standard output.
    static func write(_ bytes: [UInt8]) async throws(OutputError) {
        try await write(bytes, to: .standardOutput, named: "standard output")
    }

    /// Writes a text to standard output.
    static func write(_ text: String) async throws(OutputError) {
        try await write(Array(text.utf8))
    }

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
        _ = try? await write(Array(text.utf8), to: .standardError, named: "standard error")
    }

    /// Writes a text to standard error behind what is being written, and does not wait for it: ``flush()`` does.
    static func post(_ text: String) {
        output.submit { _ = try? FileDescriptor.standardError.writeAll(text.utf8) }
    }

    /// Returns when what was handed over so far is written.
    static func flush() async {
        await output.run {}
    }

    /// Writes pieces to both, with nothing of anybody else in between. That nobody reads standard error is not an error.
    static func write(_ pieces: [WriteOut.Piece]) async throws(OutputError) {
        let result = await output.run { () -> Result<Void, OutputError> in
            for piece in pieces {
                do {
                    let file = piece.goesToStandardError ? FileDescriptor.standardError : .standardOutput
                    try file.writeAll(piece.text.utf8)
                } catch {
                    if piece.goesToStandardError { continue }
                    return .failure(OutputError(name: "standard output", error))
                }
            }
            return .success(())
        }
        try result.get()
    }

    /// Writes bytes to a descriptor.
    static func write(_ bytes: [UInt8], to file: FileDescriptor, named name: String) async throws(OutputError)
    {
        guard !bytes.isEmpty else { return }
        let result = await output.run { () -> Result<Void, OutputError> in
            do {
                try file.writeAll(bytes)
                return .success(())
            } catch {
                return .failure(OutputError(name: name, error))
            }
        }
        try result.get()
    }

    /// Runs something that blocks on the thread of the outputs.
    static func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await output.run(body)
    }
}
