import Glibc

/// What every contender in Swift does around its measurement.
public enum Program {
    /// Reads the command line, runs the body, and ends the process: with status 1 and a line that says why when it throws.
    ///
    /// The first thread waits in the kernel. The `main` of an async program would let go of it, which instruments like
    /// valgrind do not survive.
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
