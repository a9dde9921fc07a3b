module.exports = (output, context) => ({ pass: output.includes('short'), score: 1, reason: 'checked' });
