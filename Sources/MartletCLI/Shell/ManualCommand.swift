import ArgumentParser

/// `martlet manual`: the manual page.
struct ManualCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "manual",
        abstract: "Print the manual page: martlet manual | man -l -, or into share/man/man1/martlet.1.")

    mutating func run() async throws {
        try await Console.print(ManualPage.text)
    }
}
