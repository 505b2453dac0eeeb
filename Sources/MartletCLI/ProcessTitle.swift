import Martlet

/// What other users of the machine see of the command line, as in `ps`.
enum ProcessTitle {
    /// The end of an argument, and how many of its bytes, before those that stay, are secret.
    private struct Secret {
        var suffix: String
        var keptByteCount = 0
    }

    /// Overwrites what is secret in the arguments of the process, as curl does, once they were read. Whoever looks
    /// before sees it all the same: a file of options (`-K`) is for secrets that nobody must see.
    static func hideSecrets(of groups: [OptionGroup]) {
        let secrets = groups.flatMap(ProcessTitle.secrets).filter { !$0.suffix.isEmpty }
        guard !secrets.isEmpty else { return }
        for index in 1..<max(1, Int(CommandLine.argc)) {
            guard let argument = unsafe CommandLine.unsafeArgv[index] else { continue }
            let text = unsafe String(cString: argument)
            for secret in secrets where text.ends(with: secret.suffix) {
                let end = text.utf8.count - secret.keptByteCount
                let start = text.utf8.count - secret.suffix.utf8.count
                for offset in start..<max(start, end) {
                    // A text that was mended may be longer than the bytes it was read from.
                    guard unsafe argument[offset] != 0 else { break }
                    unsafe argument[offset] = 0x2A
                }
            }
        }
    }

    private static func isSecret(_ name: Substring, in group: OptionGroup) -> Bool {
        HeadText.isSecret(name) || group.queue.secretNames.contains(name.lowercased())
    }

    private static func secrets(of group: OptionGroup) -> [Secret] {
        var values: [String] = []
        var addresses = group.transfer.urls
        // Of all that was given: a value that another replaced stands on the command line as well.
        for (option, value) in group.given {
            let colon = value.first(":")
            switch option {
            case "user", "oauth2-bearer", "proxy-user", "pass": values.append(value)
            case "cookie" where !value.begins(with: "@") && value.first("=") != nil: values.append(value)
            case "cert":
                if let colon { values.append(value.rest(behind: colon)) }
            case "header":
                guard let colon, isSecret(value[..<colon], in: group) else { continue }
                values.append(value.rest(behind: colon))
            case "url", "proxy", "socks5", "socks5-hostname": addresses.append(value)
            default: break
            }
        }
        var secrets = values.map { Secret(suffix: $0) }
        for url in addresses {
            let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
            let authority = url[start...].prefix { !"/?#".contains($0) }
            guard let mark = authority.lastIndex(of: "@") else { continue }
            secrets.append(Secret(suffix: String(url[start...]), keptByteCount: url[mark...].utf8.count))
        }
        return secrets
    }
}
