import Foundation

/// A run of the program in a process of its own.
struct Program {
    /// The lines that it prints to either output. They end with the process, and can be read once.
    let lines: AsyncStream<String>
    private let process = Process()

    /// Starts the program, which is built beside the tests.
    init(_ name: String, _ arguments: [String]) throws {
        process.executableURL = URL(filePath: CommandLine.arguments[0])
            .deletingLastPathComponent().appending(path: name)
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        let (lines, continuation) = AsyncStream<String>.makeStream()
        self.lines = lines
        try process.run()
        Thread.detachNewThread { [process] in
            var rest = Data()
            while case let data = output.fileHandleForReading.availableData, !data.isEmpty {
                rest.append(data)
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    continuation.yield(String(decoding: rest[..<end], as: UTF8.self))
                    rest = Data(rest[(end + 1)...])
                }
            }
            process.waitUntilExit()
            continuation.finish()
        }
    }

    /// Sends SIGINT, as Ctrl-C does.
    func interrupt() { process.interrupt() }

    /// Sends SIGTERM.
    func terminate() { process.terminate() }

    /// Waits for the end of the program, and returns its exit code and the lines that were not read yet.
    func finish() async -> (exitCode: Int32, lines: [String]) {
        var rest: [String] = []
        for await line in lines { rest.append(line) }
        return (process.terminationStatus, rest)
    }
}
