module.exports = (prompt) => `<${prompt}>`;
