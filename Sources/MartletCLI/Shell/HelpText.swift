import ArgumentParser

/// The help of the program: one screen, or everything.
enum HelpText {
    /// The text that words ask for; `nil` if they ask for something else.
    static func text(for words: [String]) -> String? {
        switch words {
        case ["help"], ["--help"], ["-h"]: short
        case ["help", "all"], ["--help", "all"], ["-h", "all"]: all
        default: nil
        }
    }

    /// The commands and the most used options: at most 24 lines of 80 columns.
    static var short: String {
        """
        USAGE: martlet [get] [options] URL...
               martlet COMMAND [options]

        COMMANDS:
        \(commands)

        OPTIONS OF get:
          -o FILE  write the body to a file      -X METHOD  the request method
          -d DATA  send data with POST           -H LINE    add a header field
          -F PART  send a multipart form         -u USER:PASSWORD  credentials
          -L       follow redirects              -f         fail on status 400 and above
          -i       print the head, too           -s, -v     print less, or more

        “martlet help COMMAND” lists the options of a command, “martlet help all” those
        of all commands.

        """
    }

    private static var commands: String {
        let width = MartletCommand.commands.map(\.name.count).max() ?? 0
        return MartletCommand.commands.map { name, purpose in
            "  \(name)\(String(repeating: " ", count: width - name.count))  \(purpose)"
        }.joined(separator: "\n")
    }

    /// The help of every command.
    static var all: String {
        let sections = MartletCommand.subcommands.flatMap { command in
            [command]
                + (MartletCommand.groups.contains { $0 == command } ? command.configuration.subcommands : [])
        }.map { command in
            (command as? any WordsCommand.Type)?.options.help
                ?? MartletCommand.helpMessage(for: command, columns: 80)
        }
        let rule = "\n" + String(repeating: "-", count: 79) + "\n"
        return ([short] + sections.map { $0.hasSuffix("\n") ? $0 : "\($0)\n" }).joined(separator: rule)
    }
}
