import ArgumentParser

/// `martlet completions`: what a shell is told, so that it completes commands and options.
struct CompletionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "completions",
        abstract:
            "Print what makes a shell complete commands and options: source <(martlet completions bash).")

    @Argument(help: "bash, zsh or fish.")
    var shell: String

    mutating func validate() throws {
        guard ShellCompletions(rawValue: shell) != nil else {
            throw ValidationError("“\(shell)” is not one of bash, zsh, fish")
        }
    }

    mutating func run() async throws {
        try await Console.print(ShellCompletions(rawValue: shell)?.script ?? "")
    }
}
