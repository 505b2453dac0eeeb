public import SystemPackage

extension OriginHandler {
    /// The files of a directory: streamed, with ranges, validators, types by extension, and an index where a
    /// directory has no `index.html`. Paths that lead out of the directory are refused.
    ///
    /// In a router it serves what the parameter `path` of its pattern stands for, as in `/files/{path...}`;
    /// elsewhere the request's path.
    /// - Parameters:
    ///   - directory: The directory; it may be missing or change at any time.
    ///   - validators: What is told of a file's version.
    public static func files(
        in directory: FilePath, validators: FileValidators = .strong
    ) -> OriginHandler {
        let site = FileSite(root: directory, validators: validators)
        return OriginHandler { request in
            await site.response(to: request, path: request.parameters["path"] ?? request.path)
        }
    }
}
