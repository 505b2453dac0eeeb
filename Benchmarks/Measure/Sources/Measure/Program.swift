import Glibc

/// The main function of every contender in Swift.
public enum Program {
    /// Parses the command line, runs the body, and ends the process. If the body throws, the status is 1 and the error
    /// is printed.
    ///
    /// The first thread waits in the kernel. The `main` of an async program would end this thread, which instruments
    /// like valgrind do not support.
    public static func main(_ body: @escaping @Sendable (Arguments) async throws -> Void) -> Never {
        Task.detached {
            do {
                try await body(try Arguments(Array(CommandLine.arguments.dropFirst())))
                exit(0)
            } catch {
                print("\(CommandLine.arguments[0]): \(error)")
                exit(1)
            }
        }
        while true { pause() }
    }
}
